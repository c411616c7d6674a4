/**
 * The data directory. One start at a time holds it. Small JSON files in it, readable only by their owner, keep the
 * state that the next start needs: secrets, ports, the first account.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ROOT } from '../root.ts';
import { choosePort } from './ports.ts';

/** In the checkout, so that a command finds the start from any directory. */
export const DEFAULT_DATA_DIR = join(ROOT, '.farebox');

const LOCK_FILE = 'lock';
/** Begins a transaction whose lock others can share. */
const SHARED = 'begin; select 1 from sqlite_schema';

export interface Secrets {
  readonly masterSecret: string;
  readonly simulatorKey: string;
  readonly webhookSecret: string;
  /** The simulator accepts no commands without it. */
  readonly simulatorToken: string;
  readonly postgres: PostgresPasswords;
}

export interface PostgresPasswords {
  /** The superuser's password. It is used only to set the server up. */
  readonly superuser: string;
  /** The password of the role in DATABASE_URL, which Farebox's own processes use. */
  readonly application: string;
}

export interface Ports {
  readonly postgres: number;
  readonly temporal: number;
  readonly temporalUi: number;
  readonly simulator: number;
}

/** Locks the directory, and creates it if necessary. Undefined when another process holds it. */
export function holdDataDir(dataDir: string): { release(): void } | undefined {
  makeFirstMissing(dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return tryLock(join(dataDir, LOCK_FILE), 'begin exclusive');
}

/** Where no directory can be made, such as in /proc, Node's `recursive` tries forever. */
function makeFirstMissing(path: string): void {
  const above = dirname(path);
  if (existsSync(path)) return;
  if (!existsSync(above)) return makeFirstMissing(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another start may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * Whether a start holds the directory now. A lock that can be shared tells: commands that ask at the same time must not
 * take each other for a start.
 */
export function isHeld(dataDir: string): boolean {
  let lock: { release(): void } | undefined;
  try {
    lock = tryLock(join(dataDir, LOCK_FILE), SHARED);
  } catch {
    return false; // the directory does not exist
  }
  lock?.release();
  return lock === undefined;
}

/**
 * Keeps bin/farebox from installing: PostgreSQL and our processes run from the packages. Any number of starts hold them
 * at once. Undefined where this user cannot, such as in another user's checkout.
 */
export function holdPackages(): { release(): void } | undefined {
  try {
    return tryLock(join(ROOT, 'node_modules/.in-use'), SHARED);
  } catch {
    return undefined;
  }
}

/**
 * Uses SQLite's lock on an empty database: the system releases it however the process ends, so a lock is never stale
 * and a reused process id never confuses it.
 */
function tryLock(file: string, begin: string): { release(): void } | undefined {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec(begin);
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    const SQLITE_BUSY = 5;
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

export function readJson(dataDir: string, name: string): unknown {
  const path = join(dataDir, name);
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (!(error instanceof SyntaxError)) throw error;
    throw new Error(`${path} is damaged: it is not JSON`, { cause: error });
  }
}

/** Atomic: the file is complete or unchanged, even when this process is killed. */
export function writeJson(dataDir: string, name: string, value: unknown): void {
  const path = join(dataDir, name);
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

export function removeJson(dataDir: string, name: string): void {
  rmSync(join(dataDir, name), { force: true });
}

/**
 * Created once: old receipts are verified with a key derived from the master secret. Adds secrets that an earlier
 * release did not have.
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
 * The ports of the last start where they are free, otherwise others. The simulator's port never changes, because the
 * session URLs that it issued contain it.
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
