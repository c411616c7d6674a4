/** Agents that are MCP servers, by the official SDK: of both generations, with tools that work and fail. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import {
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  type NodeIncomingMessageLike,
} from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { AgentAnswer } from '../../src/agents/adapter.ts';
import { callAgent } from '../../src/agents/call.ts';
import { sendJson } from '../support/agents.ts';
import { closeNow, listenOnLoopback } from '../support/loopback.ts';
import { until } from '../support/stack.ts';

const INVOCATION_ID = 'inv_0190b3a01c2d7e3f8a4b5c6d7e8f9a0b';

function toolServer(): McpServer {
  const server = new McpServer({ name: 'tools', version: '1.0.0' });
  server.registerTool('double', { inputSchema: z.object({ n: z.number() }) }, ({ n }) => ({
    content: [{ type: 'text', text: String(2 * n) }],
    structuredContent: { doubled: 2 * n },
  }));
  server.registerTool('fail', { inputSchema: z.object({}) }, () => ({
    isError: true,
    content: [{ type: 'text', text: 'out of otters' }],
  }));
  return server;
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Answers each request by itself, as servers of the stateless generation do. */
const stateless: Handle = (request, response) => {
  const handle = toNodeHandler(createMcpHandler(toolServer, { legacy: 'reject' }));
  void handle(request as NodeIncomingMessageLike, response);
};

/** Sessions, as servers of the older generation have them. */
function withSessions(open: Set<string>): Handle {
  const transports = new Map<string, NodeStreamableHTTPServerTransport>();
  return (request, response) => {
    void (async () => {
      const known = transports.get(String(request.headers['mcp-session-id']));
      if (known) return known.handleRequest(request, response);
      const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => {
          transports.set(id, transport);
          open.add(id);
        },
        onsessionclosed: (id) => void open.delete(id),
      });
      await toolServer().connect(transport);
      await transport.handleRequest(request, response);
    })();
  };
}

function callAt(
  server: Server,
  capability: string,
  payload: Record<string, unknown>,
  timeoutMs = 10_000,
): Promise<AgentAnswer> {
  const { port } = server.address() as AddressInfo;
  const request = {
    protocol: 'mcp',
    endpoint: `http://127.0.0.1:${port}/mcp`,
    callerId: 'caller',
    invocationId: INVOCATION_ID,
  };
  return callAgent(
    { ...request, capability, payload },
    { allowPrivate: true, signal: AbortSignal.timeout(timeoutMs) },
  );
}

/** What a server of the older generation answers to each method. */
const ANSWERS: Readonly<Record<string, object>> = {
  'server/discover': { error: { code: -32601, message: 'unknown' } },
  initialize: {
    result: {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'tools', version: '1.0.0' },
    },
  },
  'tools/call': { result: { content: [] } },
};

interface Asked {
  readonly id?: number;
  readonly method?: string;
}

/**
 * Answers one method with a stream of events that does not have its answer. Returns how often it was asked
 * for the rest.
 */
async function withStream(method: string, stream: string, timeoutMs: number) {
  let resumed = 0;
  const server = createServer((request, response) => {
    void respond(request, response);
  });
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id, method: asked = '' } = JSON.parse((await text(request)) || '{}') as Asked;
    const isRest = request.method === 'GET' && request.headers['last-event-id'] !== undefined;
    if (isRest) resumed += 1;
    if (asked === method || isRest) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream);
    } else if (ANSWERS[asked] === undefined) {
      response.writeHead(request.method === 'POST' ? 202 : 405).end();
    } else sendJson(response, { jsonrpc: '2.0', id, ...ANSWERS[asked] });
  }
  await listenOnLoopback(server);
  const answer = await Promise.race([
    callAt(server, 'double', {}, timeoutMs),
    delay(timeoutMs + 5_000, 'no answer' as const, { ref: false }),
  ]);
  await closeNow(server);
  return { answer, resumed };
}

/** The answer of a server of the older generation whose response to one method has this result. */
async function withResult(method: string, result: object): Promise<AgentAnswer> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const { id, method: asked = '' } = JSON.parse((await text(request)) || '{}') as Asked;
    if (asked === method) sendJson(response, { jsonrpc: '2.0', id, result });
    else if (ANSWERS[asked]) sendJson(response, { jsonrpc: '2.0', id, ...ANSWERS[asked] });
    else response.writeHead(request.method === 'POST' ? 202 : 405).end();
  };
  const server = createServer((request, response) => void respond(request, response));
  await listenOnLoopback(server);
  const answer = await callAt(server, 'double', {});
  await closeNow(server);
  return answer;
}

describe('an agent by mcp', () => {
  const open = new Set<string>();
  const servers = { 'the stateless generation': stateless, 'the older one': withSessions(open) };

  for (const [generation, handle] of Object.entries(servers)) {
    describe(`of ${generation}`, () => {
      const keys: (string | undefined)[] = [];
      const server = createServer((request, response) => {
        keys.push(request.headers['idempotency-key'] as string | undefined);
        handle(request, response);
      });

      before(() => listenOnLoopback(server));
      beforeEach(() => void keys.splice(0));
      after(() => closeNow(server));

      const call = (capability: string, payload: Record<string, unknown>) =>
        callAt(server, capability, payload);

      it('answers with the result of the tool', async () => {
        const answer = await call('double', { n: 21 });
        assert.ok(answer.kind === 'answered', JSON.stringify(answer));
        const { content, structuredContent } = answer.value as Record<string, unknown>;
        assert.deepEqual(content, [{ type: 'text', text: '42' }]);
        assert.deepEqual(structuredContent, { doubled: 42 });
      });

      it('gets the idempotency key with the call, and with nothing else', async () => {
        await call('double', { n: 1 });
        assert.deepEqual(
          keys.filter((key) => key !== undefined),
          [INVOCATION_ID],
        );
        assert.ok(keys.length > 1);
      });

      it('has failed when its tool says so', async () => {
        assert.deepEqual(await call('fail', {}), {
          kind: 'failed',
          error: { code: 'agent_error', message: 'out of otters' },
        });
      });

      it('refuses arguments that its tool does not take', async () => {
        const answer = await call('double', { n: 'many' });
        assert.ok(answer.kind === 'failed', JSON.stringify(answer));
        assert.match(answer.error.code, /^agent_(refused|error)$/);
      });

      it('refuses a tool that does not exist', async () => {
        const answer = await call('treble', {});
        assert.ok(answer.kind === 'failed', JSON.stringify(answer));
        assert.match(answer.error.message, /treble/);
      });
    });
  }

  it('has no session left after the calls', () => {
    assert.deepEqual([...open], []);
  });

  it('gets its answer through although it does not respond to the end of the session', async () => {
    const handle = withSessions(new Set());
    const server = createServer((request, response) => {
      if (request.method !== 'DELETE') handle(request, response);
    });
    await listenOnLoopback(server);
    // Not only when the attempt is over, which is after ten seconds. A busy machine may take as long at times.
    await until(async () => {
      const beganMs = performance.now();
      const answer = await callAt(server, 'double', { n: 21 });
      const isQuick = performance.now() - beganMs < 8_000;
      if (isQuick) assert.equal(answer.kind, 'answered');
      return isQuick;
    });
    await closeNow(server);
  });

  for (const method of Object.keys(ANSWERS)) {
    it(`is given up in time when it ends its stream without an answer to ${method}`, async () => {
      const { answer } = await withStream(method, ': nothing\n\n', 300);
      assert.deepEqual(answer, {
        kind: 'unavailable',
        error: { code: 'agent_unavailable', message: 'It did not answer in time.' },
      });
    });
  }

  for (const retry of [0, 99_999_999_999]) {
    it(`is asked for the rest of its stream once in a second, though it says ${retry}`, async () => {
      const stream = `id: 1\nretry: ${retry}\ndata:\n\n`;
      const { resumed } = await withStream('tools/call', stream, 2_500);
      assert.ok(resumed > 0 && resumed <= 3, `${resumed}`);
    });
  }

  it('is refused when it sends thousands of requests of its own', async () => {
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const { answer } = await withStream('tools/call', `data: ${ping}\n\n`.repeat(2_000), 10_000);
    assert.deepEqual(answer, {
      kind: 'failed',
      error: { code: 'invalid_answer', message: 'It sent more than 1000 requests.' },
    });
  });

  describe('with many values in a message', () => {
    const wrong = Array.from({ length: 10_000 }, () => 1);

    for (const method of Object.keys(ANSWERS)) {
      it(`is refused before each is checked, in its answer to ${method}`, async () => {
        assert.deepEqual(await withResult(method, { content: wrong }), {
          kind: 'failed',
          error: {
            code: 'invalid_answer',
            message: 'It sent more than 5000 values in a message, outside `structuredContent`.',
          },
        });
      });
    }

    it('is answered when they are the structured result of a tool', async () => {
      const structuredContent = { primes: wrong };
      const answer = await withResult('tools/call', { content: [], structuredContent });
      assert.ok(answer.kind === 'answered', JSON.stringify(answer));
      assert.deepEqual(answer.value, { content: [], structuredContent });
    });

    it('is answered with 1,000 pieces of text', async () => {
      const content = wrong.slice(0, 1_000).map(() => ({ type: 'text', text: 'an otter' }));
      const answer = await withResult('tools/call', { content });
      assert.deepEqual(answer, { kind: 'answered', value: { content } });
    });
  });
});
