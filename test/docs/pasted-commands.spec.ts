/** Commands that a reader pastes: what each reader has to replace shows it, and no error ends up in a variable. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { ROOT } from '../tree/sources.ts';
import { blocksOf } from './pages.ts';

const PAGES = globSync(['README.md', '{client,docs,examples}/*.md'], { cwd: ROOT });
const PROGRAMS = new Set(['sh', 'js', 'python']);

describe('the commands of the documentation', () => {
  const programs: { readonly place: string; readonly code: string }[] = [];
  before(async () => {
    for (const page of PAGES) {
      for (const { language, code, line } of await blocksOf(page)) {
        if (PROGRAMS.has(language)) programs.push({ place: `${page}:${line}`, code });
      }
    }
    assert.ok(programs.length > 100, `${programs.length}`);
  });

  const matching = (pattern: RegExp) =>
    programs.flatMap(({ place, code }) =>
      (code.match(pattern) ?? []).map((found) => `${place}: ${found}`),
    );

  it('have no id that only the page knows: `bdg_...` stands for that of the reader', () => {
    assert.deepEqual(matching(/\b[a-z]+_[0-9a-f]{32}\b/g), []);
  });

  it('put no error into a variable or file: the request fails, with a message', () => {
    assert.deepEqual(matching(/\$\(curl (?!-fsS ).*/g), []);
    const stored = programs.filter(({ code }) => / > [\w.]+$/m.test(code) && code.includes('curl'));
    assert.deepEqual(
      stored.filter(({ code }) => / curl (?!-fsS )/.test(` ${code}`)).map(({ place }) => place),
      [],
    );
  });
});
