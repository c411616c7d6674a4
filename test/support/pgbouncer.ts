/**
 * A real PgBouncer in front of a database, in transaction mode: the one of `npm run fetch:postgres-programs`
 * if it is there, else the machine's.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from '../../src/embedded/child.ts';
import { choosePort } from './ports.ts';

export interface PgBouncer {
  readonly url: string;
  /** The same, as a DATABASE_URL that says so. */
  readonly pooledUrl: string;
  stop(): Promise<void>;
}

const FETCHED = join(import.meta.dirname, '../../node_modules/.cache/postgres-programs/pgbouncer');
const PROGRAM = existsSync(FETCHED) ? FETCHED : 'pgbouncer';

/** Undefined: there is none. Prepared statements of one name in all sessions need 1.21. */
export function pgBouncerVersion(): number | undefined {
  const { status, stdout } = spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' });
  const [, version] = /PgBouncer (\d+\.\d+)/.exec(stdout) ?? [];
  return status === 0 && version !== undefined ? Number(version) : undefined;
}

export interface PgBouncerOptions {
  /** The session settings that it takes from clients and drops. It refuses clients that send others. */
  readonly ignored?: string;
  /** How many statements that clients prepare by name it prepares in its sessions. Unset: it does not know of them. */
  readonly preparedMax?: number;
  /** It takes no other user and password than those of `databaseUrl`, and knows no other database. */
  readonly isStrict?: boolean;
  /** The sessions that all clients share. */
  readonly sessions?: number;
}

export async function startPgBouncer(
  databaseUrl: string,
  { ignored = '', preparedMax, isStrict = false, sessions = 20 }: PgBouncerOptions = {},
): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'farebox-pgbouncer-'));
  const port = await choosePort();
  const { hostname, port: databasePort, username, password, pathname } = new URL(databaseUrl);
  const server = `host=${hostname} port=${databasePort} user=${username} password=${decodeURIComponent(password)}`;
  const file = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'users.txt');
  await writeFile(users, `"${username}" "${decodeURIComponent(password)}"\n`);
  await writeFile(
    file,
    `[databases]
${isStrict ? pathname.slice(1) : '*'} = ${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = ${isStrict ? 'scram-sha-256' : 'any'}
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${sessions}
max_client_conn = 500
ignore_startup_parameters = ${ignored}
${preparedMax === undefined ? '' : `max_prepared_statements = ${preparedMax}`}
`,
  );
  // It does not run as root, and the other user has to read its settings.
  await chmod(folder, 0o755);
  const asOther = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = await startChild({
    name: 'PgBouncer',
    command: [PROGRAM, ...asOther, file],
    env: { PATH: process.env['PATH'] },
    logFile: join(folder, 'pgbouncer.log'),
    ready: () => isListening(port),
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  url.pathname = pathname;
  const pooled = new URL(url);
  pooled.searchParams.set('pooler', 'transaction');
  return {
    url: url.href,
    pooledUrl: pooled.href,
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
