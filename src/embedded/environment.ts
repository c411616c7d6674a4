/** `run.json`: the settings of a running start's parts, for other commands. */
import type { Environment } from './child.ts';
import { isHeld, readJson, removeJson, writeJson } from './data-dir.ts';

interface Run {
  readonly pid: number;
  readonly environment: Readonly<Record<string, string>>;
}

const FILE = 'run.json';

export function announceRun(dataDir: string, environment: Readonly<Record<string, string>>): void {
  const run: Run = { pid: process.pid, environment };
  writeJson(dataDir, FILE, run);
}

export function withdrawRun(dataDir: string): void {
  removeJson(dataDir, FILE);
}

/** Whether a start has announced itself and not withdrawn the announcement. */
export function hasAnnouncedRun(dataDir: string): boolean {
  return readJson(dataDir, FILE) !== undefined;
}

/**
 * The start that is running on this data directory. After kill -9 the file still exists, but nobody holds the lock;
 * the next start that holds it first removes the file.
 */
function findRun(dataDir: string): Run | undefined {
  return isHeld(dataDir) ? (readJson(dataDir, FILE) as Run | undefined) : undefined;
}

/** The settings of the running start; throws when there is none. */
export function runningEnvironment(dataDir: string): Readonly<Record<string, string>> {
  const run = findRun(dataDir);
  if (run) return run.environment;
  throw noRunError(dataDir);
}

function noRunError(dataDir: string): Error {
  return new Error(
    `Farebox is not running on ${dataDir}: start it with \`npm start\`, name another directory ` +
      'with --data-dir, or set DATABASE_URL, TEMPORAL_ADDRESS and the rest yourself',
  );
}

/**
 * The settings for a command beside a start: the caller's own, completed by those of the running start, if any. With
 * real parts there is no start, and the caller sets everything, as for a database that is not the start's:
 * the payments of its simulator must not meet other books. Throws when there is neither.
 */
export async function environmentOf(
  dataDir: string,
  env: Environment = process.env,
): Promise<Record<string, string>> {
  const set = Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const run = findRun(dataDir);
  const { DATABASE_URL: database } = env;
  if (!run && !database) throw noRunError(dataDir);
  const isOfRun = !database || database === run?.environment['DATABASE_URL'];
  return { ...(isOfRun && run?.environment), ...Object.fromEntries(set) };
}
