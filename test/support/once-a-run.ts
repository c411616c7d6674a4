/** Work that is done once for all of a run's mocha processes, such as unpacking the browser: the others wait for it. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './stack.ts';

/** The console is built in a quarter of a minute, and on a busy machine in minutes. */
const TIMEOUT_MS = 600_000;

/**
 * Returns the folder in `parent`, which the run removes. When the work fails, its caller gets the error, and the next
 * one tries again.
 */
export async function onceARun(
  name: string,
  work: (folder: string) => Promise<unknown>,
  parent = process.env['TEST_FOLDER'] ?? '',
): Promise<string> {
  const folder = join(parent, name);
  const done = join(folder, 'done');
  await until(
    async () => {
      if (!tryMake(folder)) return existsSync(done);
      try {
        await work(folder);
      } catch (error) {
        rmSync(folder, { recursive: true, force: true });
        throw error;
      }
      writeFileSync(done, '');
      return true;
    },
    { timeoutMs: TIMEOUT_MS },
  );
  return folder;
}

function tryMake(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}
