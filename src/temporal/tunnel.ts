/**
 * Carries a worker's connection to Temporal, so that it can be cut. The native part of Temporal's SDK takes
 * up to 45 s to notice that its connection was forgotten, by a firewall for example, and no setting shortens
 * that (decision 0043). Bytes pass unchanged. It listens on the loopback address, leads only to Temporal, and
 * keeps no process alive.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { pipeline } from 'node:stream';

export interface Tunnel {
  /** To connect to in place of Temporal's. */
  readonly address: string;
  /** Call the result to cut the connections on which nothing has arrived since. */
  listen(): () => void;
  close(): Promise<void>;
}

const DEFAULT_PORT = 7233;

/** `address` is Temporal's, `host:port`. */
export async function openTunnel(address: string): Promise<Tunnel> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const temporal = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || DEFAULT_PORT),
    noDelay: true,
  };
  const connections = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect(temporal).unref();
    client.unref();
    connections.add(upstream);
    pipeline(client, upstream, client, () => connections.delete(upstream));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();

  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    listen: () => {
      const heard = [...connections].map((socket) => ({ socket, bytes: socket.bytesRead }));
      return () => {
        for (const { socket, bytes } of heard) if (socket.bytesRead === bytes) socket.destroy();
      };
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of connections) socket.destroy();
      await closed;
    },
  };
}
