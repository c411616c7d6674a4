/** Agents for tests: servers on loopback that record every call, and behave as a test decides. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { closeNow, listenOnLoopback } from './loopback.ts';

/** A request as the agent received it. */
export interface AgentCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Parsed JSON; null without a body. */
  readonly body: unknown;
}

export interface TestAgent {
  readonly url: string;
  readonly port: number;
  readonly calls: readonly AgentCall[];
  /** Idempotency keys in order of arrival, each once: the agent's effects. */
  readonly effects: ReadonlySet<string>;
  /** How many are open now. */
  countConnections(): Promise<number>;
  stop(): Promise<void>;
}

export type Respond = (
  call: AgentCall,
  response: ServerResponse,
  /** The number of calls so far, including this one. */
  count: number,
) => void | Promise<void>;

export const sendJson = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

/** Returns its input. */
export const echo: Respond = ({ body }, response) => sendJson(response, { echo: body });

export async function startAgent(respond: Respond = echo, port = 0): Promise<TestAgent> {
  const calls: AgentCall[] = [];
  const effects = new Set<string>();
  const server = createServer((request, response) => {
    void text(request).then((sent) => {
      const { method = '', url: path = '', headers } = request;
      const call = {
        method,
        path,
        headers,
        body: sent === '' ? null : (JSON.parse(sent) as unknown),
      };
      calls.push(call);
      const key = headers['idempotency-key'];
      if (typeof key === 'string') effects.add(key);
      return respond(call, response, calls.length);
    });
  });
  // It keeps idle connections for longer than a test takes, and says so to its callers.
  server.keepAliveTimeout = 600_000;
  const ownPort = await listenOnLoopback(server, port);
  return {
    url: `http://127.0.0.1:${ownPort}`,
    port: ownPort,
    calls,
    effects,
    countConnections: () => promisify(server.getConnections.bind(server))(),
    stop: () => closeNow(server),
  };
}

/** An A2A agent with one task for each message, done as soon as `isDone` says so. */
export function taskAgent(isDone: () => boolean): Respond {
  let tasks = 0;
  return ({ body }, response) => {
    const { id, method, params } = body as { id: unknown; method: string; params: { id?: string } };
    const isNew = method === 'SendMessage';
    if (isNew) tasks += 1;
    const state = isDone() ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING';
    const task = { id: isNew ? `task-${tasks}` : params.id, contextId: 'c', status: { state } };
    sendJson(response, { jsonrpc: '2.0', id, result: isNew ? { task } : task });
  };
}

/** The methods of JSON-RPC that the agent was called by. */
export function methodsOf({ calls }: TestAgent): readonly string[] {
  return calls.map(({ body }) => (body as { method: string }).method);
}
