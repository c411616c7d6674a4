/** The audit log: who may not change it, how long it makes others wait, and its chain under concurrency. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { createAccounts } from '../../../src/store/accounts/accounts.ts';
import { insertKeys, newKey, newKeyRow, revokeKey } from '../../../src/store/accounts/api-keys.ts';
import { listAuditEntries, type AuditEntry } from '../../../src/store/audit/audit-log.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';

const DEFAULTS = { keyPrefix: 'fare', ledgerCount: 1, consentCeilingMicros: undefined };

describe('the audit log', () => {
  let ledger: TestLedger;
  let accountId: string;
  let consumerId: string;

  before(async () => {
    ledger = await openTestLedger(10);
    const created = await createAccounts(
      ledger.database,
      [{ email: 'owner@example.com', balanceMicros: asMicros(1_000_000) }],
      DEFAULTS,
    );
    assert.ok(created.kind === 'created' && created.accounts[0]);
    ({ accountId, consumerId } = created.accounts[0]);
  });
  after(() => ledger.drop());

  const stored = () => newKeyRow(newKey('fare', 'developer', 'live'), 'developer', accountId);
  const newest = async (): Promise<AuditEntry> => {
    const [entry] = await listAuditEntries(ledger.database, { limit: 1 });
    assert.ok(entry);
    return entry;
  };
  const isWhole = async () =>
    assert.deepEqual(await examineLedger(ledger.database, { parts: ['audit-log'] }), []);

  async function client(name: string): Promise<Client> {
    const connected = new Client({ connectionString: ledger.url, application_name: name });
    await connected.connect();
    return connected;
  }

  it('refuses to change, delete or truncate entries', async () => {
    const own = await client('psql');
    for (const statement of [
      `update farebox.audit_entries set program = 'nobody' where number = 1`,
      'update farebox.audit_entries set program = program where false',
      'delete from farebox.audit_entries where number = 1',
      'truncate farebox.audit_entries',
    ]) {
      await assert.rejects(
        own.query(statement),
        /farebox\.audit_entries is append-only/,
        statement,
      );
    }
    await own.end();
    await isWhole();
  });

  it('has no entry for what was rolled back', async () => {
    const before = await newest();
    const failed = ledger.database.transaction(async (tx) => {
      await insertKeys(tx, [stored()]);
      throw new Error('the caller went away');
    });
    await assert.rejects(failed, /went away/);
    assert.deepEqual(await newest(), before);
  });

  it('names the program, the role and the columns of a change made by hand', async () => {
    const own = await client('psql');
    await own.query('update farebox.accounts set consent_ceiling_micros = 5000000 where id = $1', [
      accountId,
    ]);
    await own.query('update farebox.accounts set email = email');
    await own.end();
    const { action, subjectId, details, program, databaseRole } = await newest();
    assert.deepEqual(
      { action, subjectId, details, program },
      {
        action: 'consent.changed',
        subjectId: accountId,
        details: { consent_ceiling_micros: 5_000_000, before: { consent_ceiling_micros: null } },
        program: 'psql',
      },
    );
    assert.equal(databaseRole, decodeURIComponent(new URL(ledger.url).username));
  });

  it('stays one chain when many transactions commit at once', async () => {
    const { number } = await newest();
    const consumer = { ledger: 0, consumerId };
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        if (index % 2 === 0) {
          const [id = ''] = await insertKeys(ledger.database, [stored()]);
          await revokeKey(ledger.database, { id });
        } else {
          await adjustBalance(ledger.database, consumer, {
            amountMicros: asMicros(index % 4 === 1 ? 10 : -10),
            reason: 'a test',
          });
        }
      }),
    );
    assert.equal((await newest()).number, number + 150);
    await isWhole();
  });

  it('makes nobody wait before the commit', async () => {
    const slow = await client('slow');
    await slow.query('begin');
    await slow.query('update farebox.accounts set consent_ceiling_micros = 7000000');
    await insertKeys(ledger.database, [stored()]);
    await slow.query('commit');
    await slow.end();
    assert.equal((await newest()).action, 'consent.changed');
    await isWhole();
  });
});
