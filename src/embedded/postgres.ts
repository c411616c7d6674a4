/**
 * An embedded PostgreSQL in a data directory of its own, on the loopback address, which asks everybody for a
 * password: every user of the machine can reach that address. What it has
 * committed survives kill -9 of everything, and whatever such an end leaves behind (a server that
 * still stops, a lock file, a half-made cluster) does not hinder the next start.
 */
import { chownSync, readdirSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runWith } from './run-with.ts';
import { startChild, type Child } from './child.ts';
import type { PostgresPasswords } from './data-dir.ts';
import { stopLeftover } from './leftover.ts';
import { launchers, postgresBin, type Launcher } from './postgres-launcher.ts';
import { closeTrustingCluster, setUpRoles, SUPERUSER } from './postgres-roles.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface PostgresOptions {
  readonly dataDir: string;
  readonly logFile: string;
  readonly env: Environment;
  readonly port: number;
  readonly settings?: Readonly<Record<string, string>>;
  /** The same at each start on this directory. */
  readonly passwords: PostgresPasswords;
}

export interface Postgres extends Child {
  /** As the application's role, which owns its database and is no superuser. */
  readonly url: string;
  /** As the superuser. */
  readonly superuserUrl: string;
  /** As in "18.4". */
  readonly version: string;
}

const MAJOR_VERSION = '18';

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  // A socket's path may have 107 bytes; a data directory's may well have more.
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  max_connections: '100',
  // Charges come at random into the index of consumers: what of it is not in memory here is read again and again.
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  // Every statement here is short: compiling it costs more than it saves.
  jit: 'off',
};

const INITDB_OPTIONS = [
  `--username=${SUPERUSER}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--no-instructions',
];

export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { dataDir, logFile, port, passwords } = options;
  const bin = postgresBin();
  // Nothing of ours but where the system's programs are: PG... settings are not for this server.
  const env = { PATH: options.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
  await mkdir(join(dataDir, '..'), { recursive: true, mode: 0o700 });
  await refuseOtherVersion(dataDir);
  await removeLeftover(dataDir);
  const launcher = await prepare(bin, dataDir, env, passwords.superuser);
  await closeTrustingCluster(
    [...launcher.argv, join(bin, 'postgres')],
    dataDir,
    env,
    passwords.superuser,
  );
  const settings = Object.entries({ ...SETTINGS, ...options.settings });
  const child = await startChild({
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
    // After a crash under load it first replays its log.
    readyTimeoutMs: 300_000,
    stopSignal: 'SIGINT',
    stopTimeoutMs: 30_000,
  });
  try {
    return { ...child, ...(await setUpRoles(port, passwords)) };
  } catch (error) {
    await child.stop();
    throw error;
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

/** Line 1 is the process id, line 8 its state. No file: no lines. */
async function readPidFile(dataDir: string): Promise<string[]> {
  const text = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '');
  return text.split('\n');
}

/** A lock file that names a process that is no server of ours would keep PostgreSQL from starting. */
async function removeLeftover(dataDir: string): Promise<void> {
  await stopLeftover(Number((await readPidFile(dataDir))[0]), dataDir, 'SIGINT');
  await rm(join(dataDir, 'postmaster.pid'), { force: true });
}

/** Makes the cluster when there is none yet; gives the way of running that works here. */
async function prepare(
  bin: string,
  dataDir: string,
  env: Environment,
  password: string,
): Promise<Launcher> {
  const isNew = !(await readFile(join(dataDir, 'PG_VERSION')).catch(() => undefined));
  // Under another name until it is whole: an initdb that was killed leaves no half cluster.
  const unfinished = `${dataDir}.new`;
  const failures: string[] = [];
  // initdb reads the password from a file of its user's own; an argument would be everybody's to see.
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

/** The folder itself last: when this is killed half way, the next start does it again. */
function giveTo(owner: { uid: number; gid: number }, folder: string): void {
  if (statSync(folder).uid === owner.uid) return;
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    chownSync(join(folder, path), owner.uid, owner.gid);
  }
  chownSync(folder, owner.uid, owner.gid);
}
