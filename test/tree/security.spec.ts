/** docs/security.md: the lists of OWASP are complete, and each point names tests that exist, by file and title. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { read, ROOT } from './sources.ts';

const TEST_PATH = /`(test\/[^`]+)`/;
/** A file and a title, up to the next file. */
const NAMED_TEST = /`(test\/[^`]+)`: (.+?)(?=; `test\/| *$)/g;
const TITLE = /\bit\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gs;
/** What varies in a title is `...` on the page. */
const VARYING = /\$\{[^}]*\}/g;
const ASVS_CHAPTERS = 17;

describe('docs/security.md', () => {
  const text = read('docs/security.md');
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(2, -1)
        .split(' |')
        .map((cell) => cell.trim()),
    );

  it('names only tests that exist', () => {
    const named = [...text.matchAll(new RegExp(TEST_PATH, 'g'))].map(([, path = '']) => path);
    assert.ok(named.length > 60);
    assert.deepEqual(
      named.filter((path) => !existsSync(join(ROOT, path))),
      [],
    );
  });

  it('names tests by titles that their files have', () => {
    const cells = rows.map((row) => row.at(-1) ?? '');
    const named = cells.flatMap((cell) => [...cell.matchAll(NAMED_TEST)]);
    assert.equal(named.length, cells.join().split('`test/').length - 1, 'each file has a title');
    assert.deepEqual(
      named
        .filter(([, path = '', title = '']) => !titlesIn(path).includes(title))
        .map(([whole]) => whole),
      [],
    );
  });

  it('has a row with a test for each point of the API Security Top 10', () => {
    const points = rows.filter(([point = '']) => /^API\d/.test(point));
    assert.deepEqual(
      points.map(([point = '']) => point.split(' ')[0]),
      Array.from({ length: 10 }, (_, index) => `API${index + 1}`),
    );
    for (const [point, , tests = ''] of points) assert.match(tests, TEST_PATH, point);
  });

  it('lists every action of the audit log once, and so does the console', () => {
    const written = read('migrations/schema.sql').matchAll(/audit_change\('([^']+)'/g);
    const actions = [...new Set([...written].map(([, action = '']) => action))].toSorted();
    const listed = rows.flatMap(([cell = '']) => [...cell.matchAll(/`([a-z_]+\.[a-z_]+)`/g)]);
    assert.deepEqual(listed.map(([, action = '']) => action).toSorted(), actions);
    const titled = read('console/src/parts/audit-entries.tsx').matchAll(/^ {2}'([a-z_.]+)': '/gm);
    assert.deepEqual([...titled].map(([, action = '']) => action).toSorted(), actions);
  });

  it('has rows for each chapter of ASVS, and a reason where a section is not met', () => {
    const sections = rows.filter(([section = '']) => /^V\d/.test(section));
    const chapters = sections.map(([section = '']) => Number(/^V(\d+)/.exec(section)?.[1]));
    assert.deepEqual(
      [...new Set(chapters)],
      Array.from({ length: ASVS_CHAPTERS }, (_, index) => index + 1),
    );
    for (const [section = '', met = '', how = '', tests = ''] of sections) {
      assert.match(met, /^(Yes|Partly|Open|No)$/, section);
      assert.notEqual(how, '', section);
      // Documentation is shown by itself.
      const isShown = TEST_PATH.test(tests) || section.endsWith(' Documentation');
      if (met === 'Yes') assert.ok(isShown, section);
      // Numbers of the requirements that are not met, where a part of the section is.
      if (met === 'Open') assert.match(how, /\b\d+\.\d+\.\d+\b/, section);
    }
  });
});

function titlesIn(path: string): string[] {
  return [...read(path).matchAll(TITLE)].map(([, , title = '']) =>
    title.replaceAll(VARYING, '...').replaceAll('\\', ''),
  );
}
