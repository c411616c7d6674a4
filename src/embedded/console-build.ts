/**
 * Builds the console when its sources are not those of what is built: for `npm start` and the tests. A production
 * image is made with it built. Several at once each build for themselves; the first one's files stay, since they may be
 * served already.
 */
import { createHash } from 'node:crypto';
import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../root.ts';

const BUILT = join(ROOT, 'console/.dist');
/** What goes into it: its own files, what it shares with the API, and the versions of its packages. */
const SOURCES = [
  'console/{index.html,package.json,tsconfig.json,vite.config.ts}',
  'console/src/**/*',
  'src/domain/**/*.ts',
  'package-lock.json',
];

/** Whether there was something to build. Throws what the build printed when it fails. */
export async function buildConsole(): Promise<boolean> {
  const hash = hashOfSources(SOURCES);
  if (isBuilt(hash)) return false;
  const draft = `${BUILT}-${process.pid}`;
  try {
    const vite = join(ROOT, 'node_modules/vite/bin/vite.js');
    await promisify(execFile)(process.execPath, [vite, 'build', '--logLevel=warn'], {
      cwd: join(ROOT, 'console'),
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', CONSOLE_OUT_DIR: draft },
    });
    writeFileSync(join(draft, 'sources.sha256'), hash);
    if (isBuilt(hash)) {
      rmSync(draft, { recursive: true });
      return false;
    }
    const old = `${draft}-old`;
    if (existsSync(BUILT)) renameSync(BUILT, old);
    renameSync(draft, BUILT);
    rmSync(old, { recursive: true, force: true });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process was done a moment earlier, with the same sources.
    if (isBuilt(hash)) return false;
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`the console could not be built: ${stderr || stdout || String(error)}`, {
      cause: error,
    });
  }
  return true;
}

function isBuilt(hash: string): boolean {
  const file = join(BUILT, 'sources.sha256');
  return existsSync(file) && readFileSync(file, 'utf8') === hash;
}

/** A hash of the names and contents of the files that match the patterns. */
export function hashOfSources(patterns: readonly string[]): string {
  const hash = createHash('sha256');
  const files = globSync(patterns, { cwd: ROOT, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  for (const file of files)
    hash.update(file.slice(ROOT.length)).update('\0').update(readFileSync(file));
  return hash.digest('hex');
}
