/** Doctor reports entries of the audit log that were changed, deleted or moved, and changes that are not in it. */
import assert from 'node:assert/strict';
import { auditLedger } from '../../../src/store/audit/ledger-checks.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { openPlantedBooks, type PlantedBooks } from './planted-books.ts';

const CHAIN = 'the audit log is an unbroken chain';
const COMPLETE = 'the audit log has every change';
const PRESENT = 'the audit log has the present consents and operators';

interface Fault {
  readonly what: string;
  readonly statements: readonly string[];
  /** Each finding: its check and its subject. */
  readonly finds: readonly (readonly [check: string, subject: string])[];
}

const LAST = '(select max(number) from farebox.audit_entries)';
const FAULTS: readonly Fault[] = [
  {
    what: 'a changed account',
    statements: ['update farebox.audit_entries set account_id = uuidv7() where number = 2'],
    finds: [[CHAIN, 'entry 2']],
  },
  {
    what: 'changed details',
    statements: [
      `update farebox.audit_entries set details = '{"kind": "legacy"}' where number = 3`,
    ],
    finds: [[CHAIN, 'entry 3']],
  },
  {
    what: 'a time moved by a microsecond',
    statements: [
      `update farebox.audit_entries set happened_at = happened_at + interval '1 microsecond' where number = 4`,
    ],
    finds: [[CHAIN, 'entry 4']],
  },
  {
    what: 'a changed entry with a matching hash',
    statements: [
      `update farebox.audit_entries set program = 'psql' where number = 2`,
      `update farebox.audit_entries e set hash = farebox.audit_hash(
        (select hash from farebox.audit_entries where number = 1), e) where number = 2`,
    ],
    finds: [[CHAIN, 'entry 3']],
  },
  {
    what: 'a deleted consent',
    statements: [`delete from farebox.audit_entries where action = 'consent.changed'`],
    finds: [
      [CHAIN, 'entry 8'],
      [PRESENT, 'consent.changed :account'],
    ],
  },
  {
    what: 'the first entry deleted',
    statements: ['delete from farebox.audit_entries where number = 1'],
    finds: [
      [CHAIN, 'entry 2'],
      [COMPLETE, 'account.created :account'],
    ],
  },
  {
    what: 'the last entry deleted',
    statements: [`delete from farebox.audit_entries where number = ${LAST}`],
    finds: [[COMPLETE, 'key.revoked :key']],
  },
  {
    what: 'two entries exchanged',
    statements: [
      'update farebox.audit_entries set number = -number where number in (2, 3)',
      'update farebox.audit_entries set number = 5 + number where number < 0',
    ],
    finds: [
      [CHAIN, 'entry 2'],
      [CHAIN, 'entry 3'],
      [CHAIN, 'entry 4'],
    ],
  },
  {
    what: 'a key created while the triggers were off',
    statements: [
      'alter table farebox.api_keys disable trigger user',
      `insert into farebox.api_keys (id, hash, kind, account_id, last_four)
        values ('00000000-0000-7000-8000-000000000001', sha256('x'), 'legacy', ':account', 'abcd')`,
      'alter table farebox.api_keys enable trigger user',
    ],
    finds: [[COMPLETE, 'key.created 00000000-0000-7000-8000-000000000001']],
  },
  {
    what: 'a consent changed while the triggers were off',
    statements: [
      'alter table farebox.accounts disable trigger user',
      'update farebox.accounts set consent_ceiling_micros = 2000000',
      'alter table farebox.accounts enable trigger user',
    ],
    finds: [[PRESENT, 'consent.changed :account']],
  },
  {
    what: 'an operator promoted while the triggers were off',
    statements: [
      'alter table farebox.accounts disable trigger user',
      'update farebox.accounts set operator_since = now()',
      'alter table farebox.accounts enable trigger user',
    ],
    finds: [[PRESENT, 'operator.changed :account']],
  },
  {
    what: 'a budget created and closed while the triggers were off',
    statements: [
      'alter table farebox.budget_details disable trigger user',
      `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name, closed_at)
        values ('ffffffff-ffff-7000-8000-000000000001', 0, uuidv7(), 1, '{1}', 'planted', now() + interval '2 hours')`,
      'alter table farebox.budget_details enable trigger user',
    ],
    finds: [
      [COMPLETE, 'budget.closed ffffffff-ffff-7000-8000-000000000001'],
      [COMPLETE, 'budget.created ffffffff-ffff-7000-8000-000000000001'],
    ],
  },
];

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
    const [{ account } = { account: '' }] = accounts;
    await sql.query('update farebox.accounts set consent_ceiling_micros = 1000000');
    const { rows } = await sql.query<{ key: string }>(
      `update farebox.api_keys set revoked_at = now() where kind = 'legacy' returning id as key`,
    );
    names = { account, key: rows[0]?.key ?? '' };
    await sql.query('create temporary table saved as table farebox.audit_entries');
  });
  after(async () => {
    await database?.end();
    await books?.close();
  });

  it('finds nothing in a log that nobody touched', async () => {
    assert.deepEqual(await books.examine('--only', 'audit-log'), { ok: true, findings: [] });
  });

  it('finds nothing when a budget was closed while the migration that logs it was applied', async () => {
    const { rows } = await books.sql.query<{ id: string }>('select uuidv7() as id');
    await books.sql.query('alter table farebox.budget_details disable trigger user');
    await books.sql.query(
      `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name, closed_at)
        select $1, 0, uuidv7(), 1, '{1}', 'planted', applied_at + interval '1 minute'
        from farebox.migrations where name = '0065_audit_budgets'`,
      [rows[0]?.id],
    );
    await books.sql.query('alter table farebox.budget_details enable trigger user');
    assert.deepEqual(await auditLedger(database, { parts: ['audit-log'] }), []);
    await books.sql.query(`delete from farebox.budget_details where name = 'planted'`);
  });

  for (const { what, statements, finds } of FAULTS) {
    it(`finds ${what}`, async () => {
      await books.sql.query('alter table farebox.audit_entries disable trigger user');
      for (const statement of statements) await books.sql.query(filledIn(statement));
      const findings = await auditLedger(database, { parts: ['audit-log'] });
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
    assert.deepEqual(await auditLedger(database, { parts: ['audit-log'] }), []);
  });

  it('finds that entries can be changed', async () => {
    await books.sql.query('drop trigger audit_entries_append_only on farebox.audit_entries');
    const findings = await auditLedger(database, { parts: ['schema'] });
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
    await books.sql.query('delete from farebox.audit_entries');
    await books.sql.query('insert into farebox.audit_entries table saved');
    await books.sql.query('alter table farebox.audit_entries enable trigger user');
  }

  const filledIn = (text: string) =>
    text.replaceAll(/:(account|key)\b/g, (_, name: string) => names[name] ?? '');
});
