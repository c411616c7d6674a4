/** The program of the commit before the last change of the schema, checked out beside this one. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../tree/sources.ts';

export interface Checkout {
  readonly folder: string;
  remove(): Promise<void>;
}

const NUMBERED = 'migrations/[0-9]*.sql';
const run = promisify(execFile);

/**
 * On a branch where every merge is one step: the commit before the last one that changed migrations/, or the last
 * commit when they have uncommitted changes. When numbered files were rewritten since, no database of that
 * commit can migrate to this one, so it is the commit that rewrote them. `PREVIOUS=<commit>` overrides it. Undefined
 * where there is no git history, as in a tarball.
 */
export function findPreviousCommit(): string | undefined {
  try {
    const given = process.env['PREVIOUS'];
    if (given) return git('rev-parse', '--short', given);
    if (git('status', '--porcelain', 'migrations') !== '')
      return git('rev-parse', '--short', 'HEAD');
    const changes = git('log', '--first-parent', '--format=%h', '--', 'migrations').split('\n');
    for (const changed of changes) {
      const previous = before(changed);
      if (previous) return previous;
    }
    return changes[0];
  } catch {
    return undefined;
  }
}

/**
 * Undefined: the commit has no parent here, or its parent's numbered files are not the beginning of ours. A
 * branch that was merged in between may have had later files before earlier ones.
 */
function before(commit: string): string | undefined {
  const [, parent] = git('rev-list', '--parents', '-1', commit).split(' ');
  if (!parent) return undefined;
  const changed = git(
    'diff',
    '--name-only',
    '--no-renames',
    '--diff-filter=MD',
    parent,
    '--',
    NUMBERED,
  );
  const [ours, theirs] = ['HEAD', parent].map((at) =>
    git('ls-tree', '--name-only', at, 'migrations/')
      .split('\n')
      .filter((path) => /\/\d{4}_/.test(path)),
  );
  const isBeginning = theirs?.every((path, index) => path === ours?.[index]);
  return changed === '' && isBeginning ? git('rev-parse', '--short', parent) : undefined;
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim();
}

/** It uses our packages if it requires the same ones, else it installs its own, which takes a minute. */
export async function checkOut(commit: string): Promise<Checkout> {
  const folder = await mkdtemp(join(tmpdir(), 'farebox-previous-'));
  const archive = join(folder, 'farebox.tar');
  await run('git', ['archive', `--output=${archive}`, commit], { cwd: ROOT });
  await run('tar', ['-xf', archive, '-C', folder]);
  if ((await dependencies(folder)) === (await dependencies(ROOT))) {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  } else {
    await run(process.execPath, ['bin/farebox', 'exec', 'true'], { cwd: folder });
  }
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

async function dependencies(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'package.json'), 'utf8');
  return JSON.stringify((JSON.parse(text) as { dependencies: object }).dependencies);
}
