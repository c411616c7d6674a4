/**
 * An embedded PostgreSQL with its own data directory, on the loopback address. It requires a password, because every
 * user of the machine can reach that address. Commits survive kill -9 of everything, and the leftovers of such an end
 * (a server or a statement that is still ending, a lock file, an incomplete cluster) do not block the next start.
 */
import { chownSync, readdirSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runWith } from './run-with.ts';
import { startChild, type Child, type Environment } from './child.ts';
import type { PostgresPasswords } from './data-dir.ts';
import { stopLeftover } from './leftover.ts';
import { launchers, postgresBin, type Launcher } from './postgres-launcher.ts';
import { setUpRoles, SUPERUSER } from './postgres-roles.ts';

export interface PostgresOptions {
  readonly dataDir: string;
  readonly logFile: string;
  readonly env: Environment;
  readonly port: number;
  readonly settings?: Readonly<Record<string, string>>;
  /** The same for each start on this directory. */
  readonly passwords: PostgresPasswords;
}

export interface Postgres extends Child {
  /** For the application's role, which owns its database and is not a superuser. */
  readonly url: string;
  /** For the superuser. */
  readonly superuserUrl: string;
  /** For example "18.4". */
  readonly version: string;
}

const MAJOR_VERSION = '18';

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  // A socket's path is limited to 107 bytes, and a data directory's path may be longer.
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  max_connections: '100',
  // Charges touch the index of consumers at random, so the parts of it outside this memory are read again and again.
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  // All our statements are short: JIT compilation costs more than it saves.
  jit: 'off',
  // A start after a restore waits for the end of the recovery: before it, nothing can be written.
  hot_standby: 'off',
};

const INITDB_OPTIONS = [
  `--username=${SUPERUSER}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--no-instructions',
];

/** How long to wait for statements of a killed server. */
const STATEMENTS_MS_MAX = 60_000;
const POLL_MS = 200;

export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { dataDir, logFile, port, passwords } = options;
  const bin = postgresBin();
  // Only the path of the system's programs: PG... variables are not meant for this server.
  const env = { PATH: options.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
  await mkdir(join(dataDir, '..'), { recursive: true, mode: 0o700 });
  await refuseOtherVersion(dataDir);
  await removeLeftover(dataDir);
  const launcher = await prepare(bin, dataDir, env, passwords.superuser);
  const settings = Object.entries({ ...SETTINGS, ...options.settings });
  const start = () =>
    startChild({
      name: 'PostgreSQL',
      launcher: launcher.argv,
      command: [
        join(bin, 'postgres'),
        `-D${dataDir}`,
        `-p${port}`,
        ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      env,
      logFile,
      ready: async (pid) => {
        const lines = await readPidFile(dataDir);
        return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
      },
      // After a crash under load, it replays its log first.
      readyTimeoutMs: 300_000,
      stopSignal: 'SIGINT',
      stopTimeoutMs: 30_000,
    });
  const child = await afterStatements(start);
  try {
    return { ...child, ...(await setUpRoles(port, passwords)) };
  } catch (error) {
    await child.stop();
    throw error;
  }
}

/**
 * After a server was killed, PostgreSQL does not start until the statements that it ran have ended: they still use its
 * shared memory.
 */
async function afterStatements(start: () => Promise<Child>): Promise<Child> {
  const deadline = Date.now() + STATEMENTS_MS_MAX;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const isInUse = String(error).includes('pre-existing shared memory block');
      if (!isInUse || Date.now() > deadline) throw error;
      await delay(POLL_MS);
    }
  }
}

async function refuseOtherVersion(dataDir: string): Promise<void> {
  const version = await readFile(join(dataDir, 'PG_VERSION'), 'utf8').catch(() => undefined);
  if (version === undefined || version.trim() === MAJOR_VERSION) return;
  throw new Error(
    `${dataDir} holds data of PostgreSQL ${version.trim()}, and this is PostgreSQL ${MAJOR_VERSION}: ` +
      'choose another directory with --data-dir, or upgrade the data with pg_upgrade',
  );
}

/** Line 1 is the process id, line 8 its state. Without the file, there are no lines. */
async function readPidFile(dataDir: string): Promise<string[]> {
  const text = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '');
  return text.split('\n');
}

/** PostgreSQL does not start when a lock file names a live process, even an unrelated one. */
async function removeLeftover(dataDir: string): Promise<void> {
  await stopLeftover(Number((await readPidFile(dataDir))[0]), dataDir, 'SIGINT');
  await rm(join(dataDir, 'postmaster.pid'), { force: true });
}

/** Creates the cluster if it does not exist. Returns the launcher that works here. */
async function prepare(
  bin: string,
  dataDir: string,
  env: Environment,
  password: string,
): Promise<Launcher> {
  const isNew = !(await readFile(join(dataDir, 'PG_VERSION')).catch(() => undefined));
  // Built under another name first, so a killed initdb leaves no incomplete cluster.
  const unfinished = `${dataDir}.new`;
  const failures: string[] = [];
  // initdb reads the password from a private file; every user could see an argument.
  const passwordFile = `${dataDir}.password`;
  for (const launcher of launchers(isNew ? undefined : statSync(dataDir).uid)) {
    try {
      if (isNew) {
        await rm(unfinished, { recursive: true, force: true });
        await mkdir(unfinished, { mode: 0o700 });
        await rm(passwordFile, { force: true });
        await writeFile(passwordFile, password, { mode: 0o600 });
      }
      if (launcher.owner) giveTo(launcher.owner, isNew ? unfinished : dataDir);
      if (launcher.owner && isNew) chownSync(passwordFile, launcher.owner.uid, launcher.owner.gid);
      const command = isNew
        ? [join(bin, 'initdb'), '-D', unfinished, `--pwfile=${passwordFile}`, ...INITDB_OPTIONS]
        : [join(bin, 'postgres'), '-D', dataDir, '-C', 'port'];
      await runWith('', [...launcher.argv, ...command], env);
      if (isNew) await rename(unfinished, dataDir);
      return launcher;
    } catch (error) {
      failures.push(((error as { stderr?: string }).stderr || String(error)).trim());
    } finally {
      await rm(passwordFile, { force: true });
    }
  }
  throw new Error(`PostgreSQL cannot run here:\n${failures.join('\n')}`);
}

/** The folder itself comes last: when this is killed halfway, the next start repeats it. */
function giveTo(owner: { uid: number; gid: number }, folder: string): void {
  if (statSync(folder).uid === owner.uid) return;
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    chownSync(join(folder, path), owner.uid, owner.gid);
  }
  chownSync(folder, owner.uid, owner.gid);
}
