/** The pages that people read first: the README and the changelogs. */
import assert from 'node:assert/strict';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { read } from '../tree/sources.ts';

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

  for (const page of ['CHANGELOG.md', 'client/CHANGELOG.md']) {
    it(`list no fix of a bug that was never released: ${page}`, () => {
      const [firstRelease = ''] = read(page).split(/^## /m).slice(-1);
      const headings = firstRelease.match(/^### .+$/gm);
      assert.deepEqual(headings, ['### Added']);
    });
  }
});
