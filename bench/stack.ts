/**
 * The measured processes, on a temporary data directory: PostgreSQL as `npm start` runs it, with fsync, and API
 * processes.
 */
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startChild, type Child } from '../src/embedded/child.ts';
import { apiProcesses, LEAN_ENVIRONMENT, LEAN_NODE } from '../src/embedded/parts.ts';
import { choosePort } from '../src/embedded/ports.ts';
import { randomPasswords } from '../src/embedded/data-dir.ts';
import { startPostgres } from '../src/embedded/postgres.ts';

/** For every measured server. */
export const API_PROCESSES = apiProcesses(process.env);

const ROOT = join(import.meta.dirname, '..');

export interface Stack {
  readonly directory: string;
  readonly postgresVersion: string;
  /** The settings of PostgreSQL that determine the cost of a commit. */
  readonly postgresSettings: Readonly<Record<string, string>>;
  /** An empty database on this server. */
  createDatabase(name: string): Promise<string>;
  /** Stops only once: an interrupt may arrive while the run ends. */
  stop(): Promise<void>;
}

export interface HttpServer {
  readonly url: string;
  stop(): Promise<void>;
  /** The peak memory of the process, if the system reports it. */
  peakMemoryMiB(): Promise<number | undefined>;
}

type Environment = Readonly<Record<string, string>>;

export async function startStack(): Promise<Stack> {
  const directory = await mkdtemp(join(tmpdir(), 'farebox-bench-'));
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    logFile: join(directory, 'postgres.log'),
    env: process.env,
    port: await choosePort(),
    passwords: randomPasswords(),
    // The baseline's 64 clients are in addition to all other connections.
    settings: { max_connections: '200' },
  });
  // Each scenario begins with a checkpoint, so none pays for another's.
  await withClient(postgres.superuserUrl, (client) =>
    client.query('grant pg_checkpoint to farebox'),
  );
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await postgres.stop();
    await rm(directory, { recursive: true });
  };
  return {
    directory,
    postgresVersion: postgres.version,
    postgresSettings: await settingsOf(postgres.url),
    createDatabase: async (name) => {
      await withClient(postgres.superuserUrl, (client) =>
        client.query(`create database ${name} owner farebox`),
      );
      const url = new URL(postgres.url);
      url.pathname = `/${name}`;
      return url.href;
    },
    stop: () => (stopping ??= stop()),
  };
}

async function settingsOf(databaseUrl: string): Promise<Record<string, string>> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ name: string; setting: string }>(
      `select name, current_setting(name) as setting from pg_settings
       where name in ('fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size')`,
    ),
  );
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

/** Opens a connection for the duration of `work`. */
export async function withClient<T>(
  databaseUrl: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** API processes as `npm start` runs them on this machine. */
export function startApi(
  stack: Stack,
  databaseUrl: string,
  env: Environment = {},
): Promise<HttpServer> {
  return startServers(stack, 'api', [...LEAN_NODE, join(ROOT, 'src/cli.ts'), 'api'], {
    ...LEAN_ENVIRONMENT,
    DATABASE_URL: databaseUrl,
    SHARE_PORT: 'true',
    // The same each time, for one database.
    MASTER_SECRET: 'a secret of the measured processes',
    // Charging needs neither, but an API process requires both.
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    STRIPE_SECRET_KEY: 'sk_test_bench',
    STRIPE_WEBHOOK_SECRET: 'whsec_bench',
    ...env,
  });
}

/** One of servers/. */
export function startRival(
  stack: Stack,
  name: 'fastify' | 'koa',
  env: Environment,
): Promise<HttpServer> {
  return startServers(stack, name, [join(import.meta.dirname, `servers/${name}.ts`)], env);
}

/** Every server gets as many processes on one port, so the comparison is between the code. */
async function startServers(
  stack: Stack,
  name: string,
  args: readonly string[],
  env: Environment,
): Promise<HttpServer> {
  const port = await choosePort();
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const shared = { PATH, NODE_COMPILE_CACHE };
  const children = await Promise.all(
    Array.from({ length: API_PROCESSES }, (_, index) =>
      startChild({
        name,
        command: [process.execPath, ...args],
        logFile: join(stack.directory, `${name}-${index}.log`),
        ready: 'message',
        env: { ...shared, PORT: String(port), LOG_LEVEL: 'warn', ...env },
      }),
    ),
  );
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => void (await Promise.all(children.map((child) => child.stop()))),
    peakMemoryMiB: async () => {
      const peaks = await Promise.all(children.map(peakMemoryMiB));
      const known = peaks.filter((peak) => peak !== undefined);
      return known.length > 0 ? Math.max(...known) : undefined;
    },
  };
}

async function peakMemoryMiB({ pid }: Child): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) / 1024;
}
