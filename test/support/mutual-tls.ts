/** A server that accepts only clients with a certificate, in front of another one: as a cluster with mTLS. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';

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
  const folder = mkdtempSync(join(tmpdir(), 'farebox-tls-'));
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'ignore'] });
  for (const ca of ['ca', 'other-ca']) newAuthority(openssl, ca);
  newCertificate(openssl, folder, 'server', SERVER_NAME);
  newCertificate(openssl, folder, 'client', 'farebox');

  const [host, port] = behind.split(':') as [string, string];
  const sockets = new Set<Socket>();
  const server = createServer(
    {
      key: readFileSync(file('server.key')),
      cert: readFileSync(file('server.crt')),
      ca: readFileSync(file('ca.crt')),
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    file,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
      rmSync(folder, { recursive: true });
    },
  };
}

type OpenSsl = (...args: string[]) => void;

const newKey = (name: string) =>
  ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'].concat([
    '-nodes',
    '-keyout',
    `${name}.key`,
  ]);

function newAuthority(openssl: OpenSsl, name: string): void {
  openssl(
    'req',
    '-x509',
    ...newKey(name),
    '-out',
    `${name}.crt`,
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
  );
}

function newCertificate(openssl: OpenSsl, folder: string, name: string, subject: string): void {
  openssl('req', ...newKey(name), '-out', `${name}.csr`, '-subj', `/CN=${subject}`);
  writeFileSync(join(folder, `${name}.ext`), `subjectAltName=DNS:${subject}\n`);
  const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
  openssl(
    'x509',
    '-req',
    '-in',
    `${name}.csr`,
    ...by,
    '-out',
    `${name}.crt`,
    '-extfile',
    `${name}.ext`,
  );
}
