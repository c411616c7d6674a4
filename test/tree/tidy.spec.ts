/** The habits of CONTRIBUTING.md that a machine can check, over every file that people write here. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { headingsOf, read, ROOT, writtenFiles } from './sources.ts';

const LINES_MAX = 500;
const SOURCE = /\.(tsx?|js|mjs|sql|lua|css)$/;
const OPENS_WITH_COMMENT = /^(#!.*\n)?(\/\*|\/\/|--)/;
/** `top-up.ts`, `top-up.spec.ts`, `index.d.ts`, `0001_accounts.sql`; no extension: `run`, `farebox`. */
const KEBAB_CASE = /^(\d{4}_)?[a-z0-9]+([-_][a-z0-9]+)*(\.[a-z0-9]+)*$/;
/** Constructions that read as translated, and for amounts the form `$10.00`. */
const CONSTRUCTIONS = [
  /\b(he|his|him|himself)\b/i,
  /\bthat there (is|are)\b/i,
  /\b(is|are) no \w+ of\b/i,
  /\b(who(m|so)?|what)ever\b/i,
  /\bwhat (came|comes|becomes|became) of\b/i,
  /[,;:] of which\b/i,
  /\b(so many at a time|for good|go(es)? on|in force|under way|just so)\b/i,
  /\b(stays?|left) (as it is|as they are|so)\b/i,
  /\bhowever (many|often|few|long)\b/i,
  /\bwhat is (credited|needed|left out|there)\b/i,
  // The specification, the client and the console call it a secret key.
  /\bdeveloper keys?\b/i,
  // Comments that only make sense with the name below them.
  /(\/\*\*|\/\/|^ *\*|description: ['"`]) ?(Of|Whose|Those) /m,
  /\b\d([\d,.]*\d)? dollars\b/i,
];
/** The formatter breaks lines of code at 100 characters, but not those of comments. */
const LONG_COMMENT = /^(?=.{121}) *(\*|\/\/) /;
/** American spelling, as in the names of Stripe and of HTTP headers. */
const BRITISH =
  /(behaviour|neighbour|colour|favour|honour|licence|labelled|misspelt|\bfor ever\b|\b(recogni|normali|organi|seriali|initiali|authori|summari)s(e|ed|es|ing)\b)/i;
/** Applied migrations are not edited, and queries are as people type them. */
const WRITTEN_ELSEWHERE =
  /^(migrations\/\d|migrations\/schema\.sql|docs\/specification\.md|test\/agents\/.*\.txt|test\/tree\/tidy)/;
/** Names that a tool or a custom gives. */
const NAMED_BY_CUSTOM = /^([A-Z]+\.md|Caddyfile|Dockerfile|LICENSE|\..*|\d{4}-[a-z0-9-]+\.md)$/;

describe('the tree', () => {
  const files = writtenFiles();

  it('opens every source file with a comment on its purpose', () => {
    const silent = files.filter(
      (path) => SOURCE.test(path) && !OPENS_WITH_COMMENT.test(read(path)),
    );
    assert.deepEqual(silent, []);
  });

  it(`has no file of more than ${LINES_MAX} lines`, () => {
    assert.deepEqual(
      files.filter((path) => read(path).split('\n').length > LINES_MAX + 1),
      [],
    );
  });

  it('names files in kebab case', () => {
    const odd = files.filter((path) => {
      const name = basename(path);
      return !KEBAB_CASE.test(name) && !NAMED_BY_CUSTOM.test(name);
    });
    assert.deepEqual(odd, []);
  });

  it('has no folder for miscellaneous code', () => {
    const drawers = files.filter((path) => /(^|\/)(utils?|helpers?|common|misc)(\/|\.)/.test(path));
    assert.deepEqual(drawers, []);
  });

  it('leaves no to-do in comments, and no test switched off or singled out', () => {
    assert.deepEqual(matches(files, /\b(TO[D]O|FIX[M]E)\b|\b(it|describe)\.(skip|only)\(/), []);
  });

  it('mentions nothing that an outside reader cannot see', () => {
    const elsewhere =
      /\/(home|Users|root|work)\/|\b(issue|ticket|pull request|PR) #?\d+|\bprompts?\b/i;
    assert.deepEqual(matches(files, elsewhere), []);
  });

  it('compiles the shapes of rows once, at the top of a module', () => {
    const compiled = /sql\s*\.(type|prepared)\(\s*row\(/;
    const offenders = files.filter((path) => path.startsWith('src/') && compiled.test(read(path)));
    assert.deepEqual(offenders, []);
  });

  it('is written without em dashes', () => {
    assert.deepEqual(matches(files, /\u2014/), []);
  });

  it('is written in plain English, with American spelling', () => {
    const written = files.filter((path) => !WRITTEN_ELSEWHERE.test(path));
    assert.deepEqual(
      [...CONSTRUCTIONS, BRITISH].flatMap((pattern) => matches(written, pattern)),
      [],
    );
  });

  it('has no line of a comment that is too long to read, but in tables', () => {
    const generated = 'client/api.d.ts';
    const written = files.filter((path) => SOURCE.test(path) && path !== generated);
    assert.deepEqual(
      matches(written, LONG_COMMENT).filter((line) => !/^[^ ]+: \* {3}/.test(line)),
      [],
    );
  });

  it('ends every file with one line break, and no line with a space', () => {
    const untidy = files.filter(
      (path) => /[ \t]+$/m.test(read(path)) || !/[^\n]\n$/.test(read(path)),
    );
    assert.deepEqual(untidy, []);
  });

  it('links in its documents only to existing files and headings', () => {
    const dead = files
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) =>
        [...read(path).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g)]
          .filter(([, target = '']) => !/^[a-z]+:/.test(target))
          .filter(([, target = '', heading]) => {
            const linked = target === '' ? path : join(dirname(path), target);
            if (!existsSync(join(ROOT, linked))) return true;
            return heading !== undefined && !headingsOf(linked).has(heading);
          })
          .map(([link]) => `${path}: ${link}`),
      );
    assert.deepEqual(dead, []);
  });
});

/** `path:line` of every line that matches. */
function matches(files: readonly string[], pattern: RegExp): string[] {
  return files.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) =>
        pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
      ),
  );
}
