/** A TCP proxy that cuts connections: before a request, within it, or when only its answer is missing. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** When both sides lose the connection: before a chunk has passed, after half of it, or after all of it. */
export type Cut = 'before' | 'within' | 'after';

/** Asked for each chunk, in either direction. */
export type Fate = (chunk: Buffer) => Cut | undefined;

export class CuttingProxy implements AsyncDisposable {
  /** How many connections were cut. */
  cuts = 0;
  readonly #fate: Fate;
  readonly #open = new Set<Socket>();
  readonly #server = createServer();

  private constructor(fate: Fate) {
    this.#fate = fate;
  }

  static async start(target: string, fate: Fate): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(fate);
    const { hostname, port } = new URL(target);
    proxy.#server.on('connection', (client) => {
      const upstream = connect(Number(port), hostname);
      proxy.#pass(client, upstream);
      proxy.#pass(upstream, client);
    });
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  #pass(from: Socket, to: Socket): void {
    this.#open.add(from);
    from.setNoDelay(true);
    from.on('error', () => {});
    from.on('close', () => {
      this.#open.delete(from);
      to.destroy();
    });
    from.on('data', (chunk) => {
      const cut = from.destroyed ? undefined : this.#fate(chunk);
      if (cut === undefined) return void to.write(chunk);
      this.cuts += 1;
      const bytes = { before: 0, within: chunk.length >> 1, after: chunk.length }[cut];
      // Ends after what was written; `to` closes, and with it `from`.
      to.end(chunk.subarray(0, bytes), () => to.destroySoon());
      from.removeAllListeners('data');
      return from.pause();
    });
  }
}
