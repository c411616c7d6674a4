/**
 * Temporal's development server on the loopback address, with a SQLite file and its web UI. Acknowledged writes survive
 * kill -9: the file has a write-ahead log that is synced at each commit.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SEARCH_ATTRIBUTES } from '../domain/search-attributes.ts';
import { startChild, type Child, type Environment } from './child.ts';
import { stopLeftover } from './leftover.ts';
import { isPortOpen } from './ports.ts';

export interface TemporalOptions {
  /** The `temporal` program, from findTemporal. */
  readonly program: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly env: Environment;
  readonly port: number;
  readonly uiPort: number;
  /** Dynamic configuration, in addition to `CLOSED` and `PINGS`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** More of the server's environment, for example of Go's memory. */
  readonly ownEnv?: Environment;
}

export interface Temporal extends Child {
  readonly address: string;
  readonly uiUrl: string;
}

/**
 * The server has no password, so the features that Farebox does not use are closed: activities without a workflow, and
 * the HTTP API, which a page in a browser could reach (it takes a port in any case, and refuses every host but this
 * one, which no browser can resolve). docs/security.md lists what stays open.
 */
const CLOSED: Readonly<Record<string, string>> = {
  'activity.enableStandalone': 'false',
  'frontend.httpAllowedHosts': '["closed.invalid"]',
};

/**
 * The server pings a connection that is silent for a second, and drops it after three without an answer,
 * together with the polls of its workers. The defaults, a minute and ten seconds, let polls of a forgotten
 * connection take tasks until then.
 */
export const PINGS: Readonly<Record<string, string>> = {
  'frontend.keepAliveTime': '"1s"',
  'frontend.keepAliveTimeout': '"3s"',
};

const PRAGMAS = ['journal_mode=WAL', 'synchronous=FULL'];

const DATABASE_FILE = 'temporal.db';
/** The process id of the last server. */
const PID_FILE = 'started.pid';
/** The process id of the last server that became ready. Once it exists, so does a complete database. */
const READY_FILE = 'server.pid';

const run = promisify(execFile);

export async function startTemporal(options: TemporalOptions): Promise<Temporal> {
  const { program, dataDir, port, uiPort } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const pidFile = join(dataDir, PID_FILE);
  const readyFile = join(dataDir, READY_FILE);
  for (const file of [pidFile, readyFile]) {
    const leftover = Number(await readFile(file, 'utf8').catch(() => ''));
    // Two servers would destroy the database.
    await stopLeftover(leftover, dataDir, 'SIGTERM');
  }
  if (!existsSync(readyFile)) await removeUnfinished(dataDir);
  const address = `127.0.0.1:${port}`;
  // Without the caller's TEMPORAL_... settings, and without a profile from the home directory.
  const env = { PATH: options.env['PATH'], HOME: dataDir, ...options.ownEnv };
  const flags = {
    ip: '127.0.0.1',
    port,
    'ui-port': uiPort,
    'db-filename': join(dataDir, DATABASE_FILE),
    'log-level': 'warn',
  };
  const child = await startChild({
    name: 'Temporal',
    command: [
      program,
      'server',
      'start-dev',
      '--ui-disable-news-fetch',
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      ...Object.entries({ ...CLOSED, ...PINGS, ...options.settings }).map(
        ([name, value]) => `--dynamic-config-value=${name}=${value}`,
      ),
      // Without a write-ahead log, the server is three times slower.
      ...PRAGMAS.map((pragma) => `--sqlite-pragma=${pragma}`),
      ...Object.entries(SEARCH_ATTRIBUTES).map(
        ([name, type]) => `--search-attribute=${name}=${type}`,
      ),
    ],
    env,
    logFile: options.logFile,
    pidFile,
    ready: async () =>
      (await isPortOpen(port)) && (await hasDefaultNamespace(program, address, env)),
  });
  await writeFile(readyFile, String(child.pid)).catch(async (error: unknown) => {
    await child.stop();
    throw error;
  });
  return { ...child, address, uiUrl: `http://127.0.0.1:${uiPort}` };
}

/** The server creates its tables one by one, and only if there is no file yet: killed meanwhile, it could never start. */
async function removeUnfinished(dataDir: string): Promise<void> {
  for (const suffix of ['', '-wal', '-shm', '-journal']) {
    await rm(join(dataDir, `${DATABASE_FILE}${suffix}`), { force: true });
  }
}

async function hasDefaultNamespace(
  program: string,
  address: string,
  env: Environment,
): Promise<boolean> {
  const describe = ['operator', 'namespace', 'describe', '--namespace', 'default'];
  return run(program, [...describe, '--address', address], { env, timeout: 5_000 }).then(
    () => true,
    () => false,
  );
}
