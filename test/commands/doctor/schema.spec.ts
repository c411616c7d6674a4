/** Doctor reports differences from this release's schema: its guarantees and its functions. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { listSchemaDifferences } from '../../../src/store/doctor/schema-checks.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { SCHEMA_CHANGES } from './plants/schema.ts';

/** What operators do to their databases, and what Farebox changes over time. */
const ALLOWED = [
  'alter table farebox.consumers set (fillfactor = 70)',
  'alter table farebox.charges_rest set (autovacuum_vacuum_scale_factor = 0.01)',
  'create extension if not exists pgcrypto',
  'create table public.notes (note text)',
  'analyze',
  `comment on table farebox.consumers is 'ours'`,
];

describe('farebox doctor --only schema', () => {
  let ledger: TestLedger;
  let sql: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    sql = new Client({ connectionString: ledger.url });
    await sql.connect();
    await ensureChargePartitions(ledger.url, Date.now());
    for (const statement of ALLOWED) await sql.query(statement);
  });
  after(async () => {
    await sql?.end();
    await ledger?.drop();
  });

  it('finds nothing in a database with months of charges, tuned storage and foreign tables', async () => {
    assert.deepEqual(await listSchemaDifferences(ledger.database), []);
  });

  it('finds each change, names the table or function, and nothing else', async () => {
    for (const { statement } of SCHEMA_CHANGES) await sql.query(statement);
    const left = await listSchemaDifferences(ledger.database);
    for (const { what, subject, details } of SCHEMA_CHANGES) {
      for (const detail of details) {
        const found = left.findIndex(
          (each) => each.subject === subject && detail.test(each.detail),
        );
        assert.ok(found >= 0, `${what}: nothing about ${subject} matches ${detail}`);
        left.splice(found, 1);
      }
    }
    assert.deepEqual(left, [], 'findings that nobody planted');
  });
});
