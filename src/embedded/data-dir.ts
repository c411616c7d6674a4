/**
 * The data directory: one start at a time holds it, and what is to be the same at the next start
 * (secrets, ports, the first account) is kept in it, in small JSON files that only the owner may read.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { choosePort } from './ports.ts';

export interface Secrets {
  readonly masterSecret: string;
  readonly simulatorKey: string;
  readonly webhookSecret: string;
  /** Without it the simulator takes no command. */
  readonly simulatorToken: string;
  readonly postgres: PostgresPasswords;
}

export interface PostgresPasswords {
  /** Of the superuser, which sets the server up and is used for nothing else. */
  readonly superuser: string;
  /** Of the role that Farebox's own processes have, which is in DATABASE_URL. */
  readonly application: string;
}

export interface Ports {
  readonly postgres: number;
  readonly temporal: number;
  readonly temporalUi: number;
  readonly simulator: number;
}

/** Takes the directory, making it when need be; undefined when another process has it. */
export function holdDataDir(dataDir: string): { release(): void } | undefined {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return tryLock(dataDir);
}

/** Whether a start holds the directory at this moment. */
export function isHeld(dataDir: string): boolean {
  let lock: { release(): void } | undefined;
  try {
    lock = tryLock(dataDir);
  } catch {
    return false; // there is no such directory
  }
  lock?.release();
  return lock === undefined;
}

/**
 * SQLite's lock on an empty database: the system lets go of it when the process ends in whatever
 * way, so no lock is ever stale, and no process is ever mistaken for another with its number.
 */
function tryLock(dataDir: string): { release(): void } | undefined {
  const database = new DatabaseSync(join(dataDir, 'lock'), { timeout: 0 });
  try {
    database.exec('begin exclusive');
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    const SQLITE_BUSY = 5;
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

export function readJson(dataDir: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(join(dataDir, name), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whole or not at all, whenever this is killed. */
export function writeJson(dataDir: string, name: string, value: unknown): void {
  const path = join(dataDir, name);
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

export function removeJson(dataDir: string, name: string): void {
  rmSync(join(dataDir, name), { force: true });
}

/**
 * Made once: receipts of years ago are verified with a key that comes from the master secret. What an earlier release
 * did not have is added.
 */
export function secretsOf(dataDir: string): Secrets {
  const kept = readJson(dataDir, 'secrets.json') as Partial<Secrets> | undefined;
  const secrets = {
    masterSecret: randomSecret(),
    simulatorKey: `sk_test_${randomSecret()}`,
    webhookSecret: `whsec_${randomSecret()}`,
    simulatorToken: randomSecret(),
    postgres: randomPasswords(),
    ...kept,
  };
  if (Object.keys(secrets).length > Object.keys(kept ?? {}).length) {
    writeJson(dataDir, 'secrets.json', secrets);
  }
  return secrets;
}

export function randomPasswords(): PostgresPasswords {
  return { superuser: randomSecret(), application: randomSecret() };
}

function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * The ports of the last start where they are free, else others. The simulator's stays in any case:
 * it is in the session URLs that it gave out.
 */
export async function portsOf(dataDir: string): Promise<Ports> {
  const kept = readJson(dataDir, 'ports.json') as Ports | undefined;
  const ports = {
    postgres: await choosePort(kept?.postgres),
    temporal: await choosePort(kept?.temporal),
    temporalUi: await choosePort(kept?.temporalUi),
    simulator: kept?.simulator ?? (await choosePort()),
  };
  writeJson(dataDir, 'ports.json', ports);
  return ports;
}
