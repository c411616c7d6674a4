/** A proxy between a client and the service that forwards everything and counts requests. */
import { once } from 'node:events';
import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export class CountingProxy implements AsyncDisposable {
  /** Method and path of each request, in order. */
  readonly requests: string[] = [];
  readonly #server = createServer();

  private constructor() {}

  static async start(target: string): Promise<CountingProxy> {
    const proxy = new CountingProxy();
    proxy.#server.on('request', (request, response) => proxy.#pass(target, request, response));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** A connection that breaks on one side breaks on the other. */
  #pass(target: string, request: IncomingMessage, response: ServerResponse): void {
    const { method, url = '', headers } = request;
    this.requests.push(`${method} ${url}`);
    const onward = ask(
      target + url,
      { ...(method && { method }), headers, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response).on('error', () => answer.destroy());
      },
    );
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }
}
