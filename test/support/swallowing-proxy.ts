/** A TCP proxy that can go silent, like a firewall that forgot its connections: nothing is closed. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface SwallowingProxy {
  readonly port: number;
  /** From now on nothing passes on open connections; new ones work. */
  swallow(): void;
  stop(): Promise<void>;
}

export async function startSwallowingProxy(target: {
  readonly host: string;
  readonly port: number;
}): Promise<SwallowingProxy> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from);
      from.on('data', (chunk) => to.write(chunk));
      from.on('close', () => {
        open.delete(from);
        if (!swallowed.has(to)) to.destroy();
      });
      from.on('error', () => {});
    }
  });
  const swallowed = new WeakSet<Socket>();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    swallow: () => {
      for (const socket of open) {
        swallowed.add(socket);
        socket.removeAllListeners('data');
        // Further data is read and dropped.
        socket.on('data', () => {});
      }
    },
    stop: async () => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
