/**
 * Servers that a test may kill, unlike the run's shared ones. Each comes back on its port, with its data.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Child } from '../../src/embedded/child.ts';
import { randomPasswords } from '../../src/embedded/data-dir.ts';
import { newDataFolder } from './data-folder.ts';
import { choosePort } from './ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { startTemporal } from '../../src/embedded/temporal.ts';
import { LEAN_TEMPORAL } from './lean-temporal.ts';
import { migrate } from '../../src/store/migrations.ts';

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

/** At the newest schema, with its own database. `more` are settings of the server; `folder` is removed at the end. */
export async function startOwnPostgres(
  more: Readonly<Record<string, string>> = {},
  folder?: string,
): Promise<OwnServer & { readonly url: string; readonly superuserUrl: string }> {
  folder ??= await newDataFolder(FOLDER_PREFIX);
  const options = {
    dataDir: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    env: process.env,
    port: await choosePort(),
    passwords: randomPasswords(),
    // Processes are killed here, not the machine: what they wrote survives without fsync.
    settings: { fsync: 'off', ...more },
  };
  const first = await startPostgres(options);
  await migrate(first.url);
  const { url, superuserUrl } = first;
  return { url, superuserUrl, ...ownServer(folder, first, () => startPostgres(options)) };
}

/** Its `default` namespace has our search attributes. `dataDir` has all of its state. */
export async function startOwnTemporal(): Promise<
  OwnServer & { readonly address: string; readonly dataDir: string }
> {
  const folder = await newDataFolder(FOLDER_PREFIX);
  const options = {
    program: process.env['TEST_TEMPORAL_PROGRAM'] ?? '',
    dataDir: join(folder, 'temporal'),
    logFile: join(folder, 'temporal.log'),
    env: process.env,
    port: await choosePort(),
    uiPort: await choosePort(),
    ...LEAN_TEMPORAL,
  };
  const first = await startTemporal(options);
  const { dataDir } = options;
  return {
    address: first.address,
    dataDir,
    ...ownServer(folder, first, () => startTemporal(options)),
  };
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
