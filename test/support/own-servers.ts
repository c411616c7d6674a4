/**
 * Servers that a test may kill, unlike the run's shared ones. Each comes back on its port, with its data.
 */
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Child } from '../../src/embedded/child.ts';
import { randomPasswords, type PostgresPasswords } from '../../src/embedded/data-dir.ts';
import { newDataFolder } from './data-folder.ts';
import { choosePort } from './ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { startTemporal } from '../../src/embedded/temporal.ts';
import { LEAN_TEMPORAL } from './lean-temporal.ts';
import { migrate } from '../../src/store/migrations.ts';
import { onceARun } from './once-a-run.ts';

export interface OwnServer {
  kill(signal: NodeJS.Signals): void;
  /** Resolves when it is gone. Nothing is shut down in order. */
  crash(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again after its end; resolves when it accepts calls. */
  restart(): Promise<void>;
  /** Whether it is not running. */
  hasEnded(): boolean;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

const FOLDER_PREFIX = 'farebox-faults-';

const run = promisify(execFile);

/** At the newest schema, with its own database. `more` are settings of the server; `folder` is removed at the end. */
export async function startOwnPostgres(
  more: Readonly<Record<string, string>> = {},
  folder?: string,
): Promise<OwnServer & { readonly url: string; readonly superuserUrl: string }> {
  folder ??= await newDataFolder(FOLDER_PREFIX);
  const passwords = await copyMigrated(join(folder, 'postgres'));
  const options = await postgresIn(folder, passwords, more);
  const first = await startPostgres(options);
  const { url, superuserUrl } = first;
  return { url, superuserUrl, ...ownServer(folder, first, () => startPostgres(options)) };
}

/** Its `default` namespace has our search attributes. `dataDir` has all of its state. */
export async function startOwnTemporal(): Promise<
  OwnServer & { readonly address: string; readonly dataDir: string }
> {
  const folder = await newDataFolder(FOLDER_PREFIX);
  const options = await temporalIn(folder);
  const { dataDir } = options;
  await copyFirstTemporal(dataDir);
  const first = await startTemporal(options);
  return {
    address: first.address,
    dataDir,
    ...ownServer(folder, first, () => startTemporal(options)),
  };
}

async function postgresIn(
  folder: string,
  passwords: PostgresPasswords,
  more: Readonly<Record<string, string>> = {},
) {
  return {
    dataDir: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    env: process.env,
    port: await choosePort(),
    passwords,
    // Processes are killed here, not the machine: what they wrote survives without fsync.
    settings: { fsync: 'off', ...more },
  };
}

async function temporalIn(folder: string) {
  return {
    program: process.env['TEST_TEMPORAL_PROGRAM'] ?? '',
    dataDir: join(folder, 'temporal'),
    logFile: join(folder, 'temporal.log'),
    env: process.env,
    port: await choosePort(),
    uiPort: await choosePort(),
    ...LEAN_TEMPORAL,
  };
}

/** Prepares the data of a server once a run. */
function onceForAll(name: string, work: (folder: string) => Promise<void>): Promise<string> {
  return onceARun(name, work, process.env['TEST_DATA_FOLDER']);
}

/**
 * Data of a PostgreSQL at the newest schema, with these passwords. To make it takes seconds of CPU time, and to copy it
 * a fraction of one.
 */
export async function copyMigrated(dataDir: string): Promise<PostgresPasswords> {
  const made = await onceForAll('migrated-postgres', async (folder) => {
    const passwords = randomPasswords();
    const postgres = await startPostgres(await postgresIn(folder, passwords));
    try {
      await migrate(postgres.url);
    } finally {
      await postgres.stop();
    }
    await writeFile(join(folder, 'passwords.json'), JSON.stringify(passwords));
  });
  await run('cp', ['-a', join(made, 'postgres'), dataDir]);
  return JSON.parse(await readFile(join(made, 'passwords.json'), 'utf8')) as PostgresPasswords;
}

/** Data of a Temporal server after its first start. */
async function copyFirstTemporal(dataDir: string): Promise<void> {
  const made = await onceForAll('first-temporal', async (folder) => {
    const temporal = await startTemporal(await temporalIn(folder));
    await temporal.stop();
  });
  await run('cp', ['-a', join(made, 'temporal'), dataDir]);
}

function ownServer(folder: string, first: Child, start: () => Promise<Child>): OwnServer {
  let running = first;
  let hasEnded = false;
  const watch = (child: Child) => {
    running = child;
    hasEnded = false;
    void child.exited.finally(() => {
      if (running === child) hasEnded = true;
    });
  };
  watch(first);
  return {
    kill: (signal) => running.kill(signal),
    crash: async (signal = 'SIGKILL') => {
      running.kill(signal);
      await running.exited;
    },
    restart: async () => {
      await running.exited;
      watch(await start());
    },
    hasEnded: () => hasEnded,
    remove: async () => {
      await running.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
