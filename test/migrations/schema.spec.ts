/** The files of migrations/ define everything in the database, each thing once. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ONCE_HOURS } from '../../src/domain/approval.ts';
import { HOLD_SECONDS_MAX } from '../../src/domain/hold.ts';
import { read, writtenFiles } from '../tree/sources.ts';
import { dumpSchema } from '../../src/store/doctor/schema-dump.ts';
import { openMigratedLedger, type TestLedger } from '../support/ledger.ts';

/** Up to here they make an empty database, which nobody uses yet. */
const FIRST_SCHEMA = 'migrations/0018_audit_log.sql';
const DEFINES = /^create or replace (?:function|aggregate) farebox\.(\w+)/gm;

describe('migrations', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openMigratedLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('produce the schema in migrations/schema.sql', async () => {
    const shown = read('migrations/schema.sql');
    const made = await dumpSchema(ledger.database);
    if (made === shown) return;
    const [before, after] = [linesOf(shown), linesOf(made)];
    const difference = [
      ...before.filter((line) => !after.includes(line)).map((line) => `- ${line}`),
      ...after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
    ];
    assert.fail(
      `migrations/schema.sql is out of date, renew it with: npm run schema\n${difference.join('\n')}`,
    );
  });

  it('define every function once, in the file of its name', async () => {
    const files = writtenFiles().filter((path) => path.startsWith('migrations/functions/'));
    const defined = files.flatMap((path) =>
      [...read(path).matchAll(DEFINES)].map(([, name = '']) => ({ path, name })),
    );
    for (const path of files) {
      const name = path.replace(/^.*\/(\w+)\.sql$/, '$1');
      assert.ok(defined.some((each) => each.path === path && each.name === name));
    }
    const { rows } = await client.query<{ name: string }>(
      `select proname as name from pg_proc p where pronamespace = 'farebox'::regnamespace
         and not exists (select from pg_depend where objid = p.oid and deptype = 'e')`,
    );
    assert.deepEqual(namesOf(defined), namesOf(rows));
  });

  it('state durations as the domain does', () => {
    const text = read('migrations/functions/post_entries_2.sql');
    const stated = [...text.matchAll(/^ *(c_\w+) constant interval := '(\d+) hours';$/gm)];
    assert.deepEqual(Object.fromEntries(stated.map(([, name, hours]) => [name, Number(hours)])), {
      c_max_age: HOLD_SECONDS_MAX / 3_600,
      c_once_within: ONCE_HOURS,
    });
    assert.equal([...text.matchAll(/interval '|interval :=/g)].length, stated.length);
  });

  it('say which locks they hold until all of them are applied, and read no charges under one', () => {
    const files = writtenFiles().filter((path) => /^migrations\/\d{4}_/.test(path));
    assert.ok(files.includes(FIRST_SCHEMA));
    const later = files.filter((path) => path > FIRST_SCHEMA);
    assert.deepEqual(
      later.filter((path) => !saysLocks(read(path)) || readsCharges(read(path))),
      [],
    );
    const change = 'update farebox.consumers c set spent_micros = 0 from farebox.charges;';
    assert.equal(saysLocks(`-- Why.\n-- Locks: none.\n${change}`), true);
    assert.equal(saysLocks(`-- Why.\n${change}\n-- Locks: none.\n`), false);
    assert.equal(readsCharges(change), true);
  });

  it('name every check and every unique constraint', async () => {
    const { rows } = await client.query<{ name: string }>(
      `select conname as name from pg_constraint
       where connamespace = 'farebox'::regnamespace and contype not in ('n', 'p', 'f')
         and conname ~ '_(check|key)\\d*$'`,
    );
    assert.deepEqual(rows, []);
  });
});

/** Each with its table or function, since many tables have a line like `id uuid not null`. */
function linesOf(dump: string): string[] {
  return dump.split('\n\n').flatMap((paragraph) => {
    const [owner = ''] = /^create \w+ [\w.]+/m.exec(paragraph) ?? [];
    return paragraph.split('\n').map((line) => `${owner}: ${line.trim()}`);
  });
}

function namesOf(named: readonly { readonly name: string }[]): string[] {
  return named.map(({ name }) => name).toSorted();
}

function saysLocks(migration: string): boolean {
  const [comment = ''] = /^(?:--.*\n)+/.exec(migration) ?? [];
  return /^-- Locks: /m.test(comment);
}

function readsCharges(migration: string): boolean {
  return /\b(from|join|update) farebox\.charges\b/.test(migration.replaceAll(/--.*/g, ''));
}
