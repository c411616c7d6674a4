/** Agents for tests: servers on loopback that record every call, and behave as a test decides. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

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
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    calls,
    effects,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
