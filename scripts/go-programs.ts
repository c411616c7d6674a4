/**
 * Programs that checks need and npm does not have: built by Go, which has to be installed, into the cache of
 * this repository.
 */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const FOLDER = join(import.meta.dirname, '../node_modules/.cache/go-programs');
const run = promisify(execFile);

/** `github.com/.../promtool@v1.2.3`. Takes minutes the first time, and says so. Returns the folder of the programs. */
export async function buildGoPrograms(packages: readonly string[]): Promise<string> {
  await mkdir(FOLDER, { recursive: true });
  for (const each of packages) {
    process.stderr.write(`Building ${each}: minutes the first time, seconds afterwards\n`);
    await run('env', [`GOBIN=${FOLDER}`, 'go', 'install', each]);
  }
  return FOLDER;
}
