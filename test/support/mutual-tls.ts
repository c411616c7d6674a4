/** A server that accepts only clients with a certificate, in front of another one: as a cluster with mTLS. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { Certificates } from './certificates.ts';
import { listenOnLoopback } from './loopback.ts';

/** The name in the server's certificate, which is not the host of its address. */
export const SERVER_NAME = 'temporal.internal';

export interface MutualTls {
  readonly address: string;
  /** The path of one of `ca.crt`, `client.crt`, `client.key`, and of another authority's `other-ca.crt`. */
  file(name: string): string;
  stop(): Promise<void>;
}

/** `behind` is `host:port`. */
export async function startMutualTls(behind: string): Promise<MutualTls> {
  const certificates = new Certificates();
  for (const ca of ['ca', 'other-ca']) certificates.addAuthority(ca);
  certificates.add('server', SERVER_NAME);
  certificates.add('client', 'farebox');

  const [host, port] = behind.split(':') as [string, string];
  const sockets = new Set<Socket>();
  const server = createServer(
    {
      key: readFileSync(certificates.file('server.key')),
      cert: readFileSync(certificates.file('server.crt')),
      ca: readFileSync(certificates.file('ca.crt')),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
    },
    (client) => {
      const upstream = connect(Number(port), host);
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(from);
        from.on('error', () => to.destroy()).on('close', () => to.destroy());
        from.pipe(to);
      }
    },
  ).on('tlsClientError', () => {});
  const ownPort = await listenOnLoopback(server);
  return {
    address: `127.0.0.1:${ownPort}`,
    file: (name) => certificates.file(name),
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
      certificates.remove();
    },
  };
}
