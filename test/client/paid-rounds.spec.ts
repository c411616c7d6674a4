/** Paid MCP tools that ask for input first (`inputRequired()` of version 2 of the SDK): paid once, when they answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { paidTool } from '@farebox/client/mcp';
import { FakeFarebox } from '@farebox/client/testing';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  InMemoryTransport,
  McpServer,
  type CallToolResult,
  type InputRequiredResult,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

const sureness = z.object({ isSure: z.boolean() });

function confirm(ctx: ServerContext): CallToolResult | InputRequiredResult {
  const { isSure } = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', sureness) ?? {};
  if (isSure !== undefined) return { content: [{ type: 'text', text: `sure: ${isSure}` }] };
  const asked = inputRequired.elicit({ message: 'Are you sure?', requestedSchema: sureness });
  return inputRequired({ inputRequests: { confirm: asked } });
}

describe('client: paid MCP tools that ask for input first', () => {
  let fake: FakeFarebox;
  let apiKey: string;

  beforeEach(() => {
    fake = new FakeFarebox();
    ({ apiKey } = fake.addConsumer({ balance: 10 }));
  });

  function create(): McpServer {
    const server = new McpServer({ name: 'test', version: '1.0.0' });
    server.registerTool(
      'remove',
      {},
      paidTool(fake.farebox(), { tool: 'remove', price: 1 }, confirm),
    );
    return server;
  }

  /** Calls the tool as a client does whose user is sure. */
  async function isPaidOnce(transport: Transport): Promise<void> {
    const caller = new Client(
      { name: 'test', version: '1.0.0' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
    );
    let asked = 0;
    caller.setRequestHandler('elicitation/create', async () => {
      asked += 1;
      return { action: 'accept', content: { isSure: true } };
    });
    await caller.connect(transport);
    const { content, _meta: meta } = await caller.callTool({ name: 'remove', arguments: {} });
    await caller.close();
    assert.deepEqual([content, asked], [[{ type: 'text', text: 'sure: true' }], 1]);
    assert.partialDeepStrictEqual(meta?.['farebox/charge'], { amount: 1, balance: 9 });
    assert.equal((await fake.consumer(apiKey).balance()).balance, 9);
  }

  it('are paid once, when they answer, by a client that calls again with the input', async () => {
    const http = createServer(toNodeHandler(createMcpHandler(create)) as RequestListener);
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    try {
      const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
      const requestInit = { headers: { 'x-service-key': apiKey } };
      await isPaidOnce(new StreamableHTTPClientTransport(url, { requestInit }));
    } finally {
      http.closeAllConnections();
      http.close();
    }
  });

  it('are paid once, when they answer, where the server asks for the input itself', async () => {
    const { SERVICE_KEY: before } = process.env;
    process.env['SERVICE_KEY'] = apiKey;
    try {
      const [client, server] = InMemoryTransport.createLinkedPair();
      await create().connect(server);
      await isPaidOnce(client);
    } finally {
      if (before === undefined) delete process.env['SERVICE_KEY'];
      else process.env['SERVICE_KEY'] = before;
    }
  });
});
