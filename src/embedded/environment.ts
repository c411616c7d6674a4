/** What a start lets others know of itself while it runs, in `run.json`: the settings of its parts. */
import { isHeld, readJson, removeJson, writeJson } from './data-dir.ts';

type Environment = Readonly<Record<string, string | undefined>>;

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

/** Whether a start said that it is up, and has not said since that it stops. */
export function hasAnnouncedRun(dataDir: string): boolean {
  return readJson(dataDir, FILE) !== undefined;
}

/** The start that is up on this data directory; after kill -9 there is a file but nobody holds it. */
export function findRun(dataDir: string): Run | undefined {
  const run = readJson(dataDir, FILE) as Run | undefined;
  return run && isHeld(dataDir) ? run : undefined;
}

/** The settings of the running start; throws when there is none. */
export function runningEnvironment(dataDir: string): Readonly<Record<string, string>> {
  const run = findRun(dataDir);
  if (run) return run.environment;
  throw new Error(
    `no Farebox is running on ${dataDir}: start one with \`npm start\`, name another directory ` +
      'with --data-dir, or set DATABASE_URL, TEMPORAL_ADDRESS and the rest yourself',
  );
}

/**
 * For a command beside a start: the caller's own settings, and for those that are not set the running
 * start's, if there is one. With real parts there is none, and it is the caller who sets them.
 */
export async function environmentOf(
  dataDir: string,
  env: Environment = process.env,
): Promise<Record<string, string>> {
  const set = Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return { ...findRun(dataDir)?.environment, ...Object.fromEntries(set) };
}
