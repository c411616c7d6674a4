/** A real PgBouncer in front of a database, in transaction mode. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from '../../src/embedded/child.ts';
import { choosePort } from './ports.ts';

export interface PgBouncer {
  readonly url: string;
  stop(): Promise<void>;
}

export function hasPgBouncer(): boolean {
  return spawnSync('pgbouncer', ['--version'], { stdio: 'ignore' }).status === 0;
}

/** `ignored`: the session settings that it takes from clients and drops. It refuses clients that send others. */
export async function startPgBouncer(
  databaseUrl: string,
  { ignored = '' }: { readonly ignored?: string } = {},
): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'farebox-pgbouncer-'));
  const port = await choosePort();
  const { hostname, port: databasePort, username, password, pathname } = new URL(databaseUrl);
  const server = `host=${hostname} port=${databasePort} user=${username} password=${decodeURIComponent(password)}`;
  const file = join(folder, 'pgbouncer.ini');
  await writeFile(
    file,
    `[databases]
* = ${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
ignore_startup_parameters = ${ignored}
`,
  );
  // It does not run as root, and the other user has to read its settings.
  await chmod(folder, 0o755);
  const asOther = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = await startChild({
    name: 'PgBouncer',
    command: ['pgbouncer', ...asOther, file],
    env: { PATH: process.env['PATH'] },
    logFile: join(folder, 'pgbouncer.log'),
    ready: () => isListening(port),
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  url.pathname = pathname;
  return {
    url: url.href,
    stop: async () => {
      await child.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}
