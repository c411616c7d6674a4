/** Doctor reports entries of the audit log that were changed, deleted or moved, and changes that are not in it. */
import assert from 'node:assert/strict';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { openPlantedBooks, type PlantedBooks } from './planted-books.ts';
import { AUDIT_LOG_FAULTS, PLANTED, PLANTED_ID } from './plants/audit-log.ts';

describe('farebox doctor --only audit-log', () => {
  let books: PlantedBooks;
  let database: Database;
  let names: Readonly<Record<string, string>>;

  before(async () => {
    books = await openPlantedBooks(1);
    const { sql, accounts, env } = books;
    database = await createDatabase(env['DATABASE_URL'] ?? '', {
      maxPoolSize: 1,
      onError: () => {},
    });
    const [{ account, adjustment, manual } = { account: '', adjustment: '', manual: '' }] =
      accounts;
    await sql.query('update farebox.accounts set consent_ceiling_micros = 1000000');
    const { rows } = await sql.query<{ key: string }>(
      `update farebox.api_keys set revoked_at = now() where kind = 'legacy' returning id as key`,
    );
    names = { account, adjustment, manual, key: rows[0]?.key ?? '' };
    await sql.query('create temporary table saved as table farebox.audit_entries');
  });
  after(async () => {
    await database?.end();
    await books?.close();
  });

  it('finds nothing in a log that nobody touched', async () => {
    assert.deepEqual(await books.examine('--only', 'audit-log'), { ok: true, findings: [] });
  });

  for (const { what, statements, finds } of AUDIT_LOG_FAULTS) {
    it(`finds ${what}`, async () => {
      await books.sql.query('alter table farebox.audit_entries disable trigger user');
      for (const statement of statements) await books.sql.query(filledIn(statement));
      const findings = await examineLedger(database, { parts: ['audit-log'] });
      assert.deepEqual(
        findings.map(({ check, subject }) => [check, subject]),
        finds.map(([check, subject]) => [check, filledIn(subject)]),
      );
      await restore();
    });
  }

  it('finds nothing in an operator that was promoted in another time zone', async () => {
    await books.sql.query(`set timezone = 'Asia/Kolkata'`);
    await books.sql.query('update farebox.accounts set operator_since = now()');
    await books.sql.query('reset timezone');
    assert.deepEqual(await examineLedger(database, { parts: ['audit-log'] }), []);
  });

  it('finds that entries can be changed', async () => {
    await books.sql.query('drop trigger audit_entries_append_only on farebox.audit_entries');
    const findings = await examineLedger(database, { parts: ['schema'] });
    assert.deepEqual(
      findings.map(({ subject }) => subject),
      ['table farebox.audit_entries'],
    );
  });

  async function restore(): Promise<void> {
    await books.sql.query('alter table farebox.accounts disable trigger user');
    await books.sql.query(
      'update farebox.accounts set consent_ceiling_micros = 1000000, operator_since = null',
    );
    await books.sql.query('alter table farebox.accounts enable trigger user');
    await books.sql.query('delete from farebox.api_keys where hash = sha256($1)', ['x']);
    await books.sql.query(`delete from farebox.budget_details where name = 'planted'`);
    await books.sql.query('delete from farebox.refund_keys');
    await books.sql.query('delete from farebox.reversals');
    await books.sql.query('delete from farebox.settled_differences');
    for (const table of Object.keys(PLANTED).toReversed()) {
      await books.sql.query(`alter table ${table} disable trigger user`);
      await books.sql.query(`delete from ${table} where id = $1`, [PLANTED_ID]);
      await books.sql.query(`alter table ${table} enable trigger user`);
    }
    await books.sql.query(
      `update farebox.movements set reason = 'a test' where kind = 'adjustment'`,
    );
    for (const table of ['top_ups', 'movements']) {
      const id = table === 'top_ups' ? 'id' : 'top_up_id';
      await books.sql.query(
        `update farebox.${table} set amount_micros = 10000000 where ${id} = $1`,
        [names['manual']],
      );
    }
    await books.sql.query('delete from farebox.audit_entries');
    await books.sql.query('insert into farebox.audit_entries table saved');
    await books.sql.query('alter table farebox.audit_entries enable trigger user');
  }

  const filledIn = (text: string) =>
    text.replaceAll(/:(account|key|adjustment|manual)\b/g, (_, name: string) => names[name] ?? '');
});
