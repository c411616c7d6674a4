/**
 * PostgreSQL behind TLS, as managed ones are: accepts connections that ask for TLS alone, and passes them on
 * to a server without it.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { pipeline } from 'node:stream/promises';
import type { Certificates } from './certificates.ts';
import { listenOnLoopback } from './loopback.ts';

/** The message by which a client asks for TLS, before anything else. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

export interface PostgresTls {
  readonly port: number;
  /** Connections that did not ask for TLS, and were closed. */
  readonly refused: () => number;
  stop(): Promise<void>;
}

/** With the certificate `<name>.crt`. */
export async function startPostgresTls(
  behind: { readonly host: string; readonly port: number },
  certificates: Certificates,
  name: string,
): Promise<PostgresTls> {
  const sockets = new Set<Socket>();
  let refused = 0;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {}).once('close', () => sockets.delete(client));
    client.once('data', (first) => {
      if (!first.equals(SSL_REQUEST)) {
        refused += 1;
        client.destroy();
        return;
      }
      client.write('S');
      const secured = new TLSSocket(client, {
        isServer: true,
        key: readFileSync(certificates.file(`${name}.key`)),
        cert: readFileSync(certificates.file(`${name}.crt`)),
      });
      const upstream = connect(behind.port, behind.host);
      sockets.add(upstream);
      upstream.once('close', () => sockets.delete(upstream));
      // Either end may break: the other one ends then.
      void pipeline(secured, upstream, secured).catch(() => {});
    });
  });
  const port = await listenOnLoopback(server);
  return {
    port,
    refused: () => refused,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
