/** The pages that people read first: the README and the changelogs. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { read, ROOT } from '../tree/sources.ts';

/** Where the README has another word for a role. */
const KEYS: Readonly<Record<string, string>> = {
  developer: 'secret',
  either: 'both',
  asker: 'any',
  public: 'none',
};

describe('the pages that people read first', () => {
  it('name the key that each endpoint takes', () => {
    const rows = read('README.md').matchAll(/^\| `([A-Z]+) (\/\S+)` +\| (\w+) +\|/gm);
    const shown = [...rows].map(([, method, path, key]) => `${method} ${path}: ${key}`);
    const taken = new Set(
      ENDPOINTS.map(
        ({ method, path, role }) => `${method.toUpperCase()} ${path}: ${KEYS[role] ?? role}`,
      ),
    );
    assert.ok(shown.length > 50, `${shown.length}`);
    assert.deepEqual(
      shown.filter((row) => !taken.has(row)),
      [],
    );
  });

  it('lead to every page of the documentation', () => {
    const linked = [...read('README.md').matchAll(/\]\((docs\/[\w-]+\.md)[)#]/g)];
    const found = new Set(linked.map(([, page]) => page));
    const pages = globSync('docs/*.md', { cwd: ROOT });
    assert.ok(pages.length > 20);
    assert.deepEqual(
      pages.filter((page) => !found.has(page)),
      [],
    );
  });

  for (const page of ['CHANGELOG.md', 'client/CHANGELOG.md']) {
    it(`list no fix of a bug that was never released: ${page}`, () => {
      const [firstRelease = ''] = read(page).split(/^## /m).slice(-1);
      const headings = firstRelease.match(/^### .+$/gm);
      assert.deepEqual(headings, ['### Added']);
    });
  }
});
