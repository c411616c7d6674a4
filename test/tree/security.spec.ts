/** docs/security.md: the lists of OWASP are complete, and each point names tests that exist. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { read, ROOT } from './sources.ts';

const TEST_PATH = /`(test\/[^`]+)`/;
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

  it('has a row with a test for each point of the API Security Top 10', () => {
    const points = rows.filter(([point = '']) => /^API\d/.test(point));
    assert.deepEqual(
      points.map(([point = '']) => point.split(' ')[0]),
      Array.from({ length: 10 }, (_, index) => `API${index + 1}`),
    );
    for (const [point, , tests = ''] of points) assert.match(tests, TEST_PATH, point);
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
