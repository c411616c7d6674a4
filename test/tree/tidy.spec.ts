/** The habits of CONTRIBUTING.md that a machine can check, over every file that people write here. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { read, ROOT, writtenFiles } from './sources.ts';

const LINES_MAX = 500;
const SOURCE = /\.(tsx?|js|mjs|sql|lua|css)$/;
const OPENS_WITH_COMMENT = /^(#!.*\n)?(\/\*|\/\/|--)/;
/** `top-up.ts`, `top-up.spec.ts`, `index.d.ts`, `0001_accounts.sql`; no extension: `run`, `farebox`. */
const KEBAB_CASE = /^(\d{4}_)?[a-z0-9]+([-_][a-z0-9]+)*(\.[a-z0-9]+)*$/;
/** Rooms whose prose is plain English. Add a room once its comments are clean. */
const PLAIN_ROOMS = [
  '.env.example',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'README.md',
  'activities/',
  'bench/',
  'bin/farebox',
  'client/',
  'console/',
  'deploy/',
  'docker-compose.yml',
  'docs/charging.md',
  'docs/decisions/',
  'docs/glossary.md',
  'docs/holds.md',
  'docs/leases.md',
  'docs/idempotency.md',
  'docs/invariants.md',
  'docs/operations.md',
  'docs/python.md',
  'docs/quickstart.md',
  'docs/runbook.md',
  'docs/scale.md',
  'docs/security.md',
  'docs/self-hosting.md',
  'docs/settings.md',
  'docs/stripe.md',
  'docs/webhooks.md',
  'docs/workflows.md',
  'examples/',
  'migrations/functions/',
  'simulator/',
  'src/agents/',
  'src/charging/',
  'src/cli.ts',
  'src/commands/',
  'src/config.ts',
  'src/console/',
  'src/domain/',
  'src/egress/',
  'src/embedded/',
  'src/events/',
  'src/http/',
  'src/mail/',
  'src/metrics/',
  'src/processes/',
  'src/schemas/',
  'src/store/accounts/',
  'src/store/agents/',
  'src/store/audit/',
  'src/store/balance/',
  'src/store/bounded-pool.ts',
  'src/store/charges/',
  'src/store/console/',
  'src/store/database.ts',
  'src/store/earnings/',
  'src/store/events/',
  'src/store/failures.ts',
  'src/store/holds/',
  'src/store/migrations.ts',
  'src/store/named-lock.ts',
  'src/store/outbox.ts',
  'src/store/statement-deadline.ts',
  'src/store/top-ups/',
  'src/stripe/',
  'src/temporal/',
  'src/top-ups/',
  'test/agents/',
  'test/api/',
  'test/bench/',
  'test/browser/',
  'test/charging/',
  'test/client/',
  'test/commands/',
  'test/console/',
  'test/domain/',
  'test/egress/',
  'test/embedded/',
  'test/examples/',
  'test/faults/',
  'test/histories/',
  'test/http/',
  'test/metrics/',
  'test/migrations/',
  'test/processes/',
  'test/simulation/',
  'test/simulator/',
  'test/store/',
  'test/stripe/',
  'test/support/',
  'test/temporal/',
  'test/tree/arrows.spec.ts',
  'test/tree/compose.spec.ts',
  'test/tree/packages.spec.ts',
  'test/tree/security.spec.ts',
  'test/tree/settings.spec.ts',
  'test/tree/sources.ts',
  'test/workflows/',
  'workflows/',
];
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
  /\b\d([\d,.]*\d)? dollars\b/i,
];
/** American spelling, as in the names of Stripe and of HTTP headers. */
const BRITISH =
  /(behaviour|neighbour|colour|favour|honour|licence|labelled|\b(recogni|normali|organi|seriali|initiali|authori|summari)s(e|ed|es|ing)\b)/i;
/** Applied migrations are not edited, and queries are as people type them. */
const SPELLED_ELSEWHERE =
  /^(migrations\/\d|docs\/specification\.md|test\/agents\/.*\.txt|test\/tree\/tidy)/;
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

  it('is written in plain English in the rooms edited for it', () => {
    const rooms = files.filter((path) => PLAIN_ROOMS.some((room) => path.startsWith(room)));
    for (const room of PLAIN_ROOMS)
      assert(
        rooms.some((path) => path.startsWith(room)),
        room,
      );
    assert.deepEqual(
      CONSTRUCTIONS.flatMap((construction) => matches(rooms, construction)),
      [],
    );
  });

  it('has American spelling', () => {
    const written = files.filter((path) => !SPELLED_ELSEWHERE.test(path));
    assert.deepEqual(matches(written, BRITISH), []);
  });

  it('ends every file with one line break, and no line with a space', () => {
    const untidy = files.filter(
      (path) => /[ \t]+$/m.test(read(path)) || !/[^\n]\n$/.test(read(path)),
    );
    assert.deepEqual(untidy, []);
  });

  it('links in its documents only to existing files', () => {
    const dead = files
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) =>
        [...read(path).matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)]
          .map(([, target = '']) => target)
          .filter((target) => !/^[a-z]+:/.test(target))
          .filter((target) => !existsSync(join(ROOT, dirname(path), target)))
          .map((target) => `${path}: ${target}`),
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
