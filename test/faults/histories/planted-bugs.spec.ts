/** A bug whose passage has changed is planted nowhere, and a long run would notice only when it comes to it. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PLANTED_BUGS } from './planted-bugs.ts';

const ROOT = join(import.meta.dirname, '../../..');

describe('the planted bugs', () => {
  it('are at least 25, with different names', () => {
    assert.ok(PLANTED_BUGS.length >= 25);
    assert.equal(new Set(PLANTED_BUGS.map(({ name }) => name)).size, PLANTED_BUGS.length);
  });

  it('each change a passage that their file has once', async () => {
    const misplaced: string[] = [];
    for (const bug of PLANTED_BUGS) {
      const path = bug.in === 'sql' ? join('migrations/functions', bug.file) : bug.file;
      const times = (await readFile(join(ROOT, path), 'utf8')).split(bug.from).length - 1;
      if (times !== 1 || bug.from === bug.to) misplaced.push(`${bug.name}: ${times} times`);
    }
    assert.deepEqual(misplaced, []);
  });
});
