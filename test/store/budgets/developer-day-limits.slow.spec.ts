/** A new daily limit for each developer, on an account that as many developers charge as it can have budgets. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { BUDGETS_MAX } from '../../../src/domain/budget.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { changeAccountKeys } from '../../../src/store/accounts/account-keys.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';

const TABLES = ['budgets', 'budget_details', 'spend_keys'];
const OLD = asMicros(5_000_000);
const NEW = asMicros(3_000_000);

describe('a daily limit for each of 100,000 developers', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    await changeAccountKeys(ledger.database, payer, { developerDayMicros: OLD });
    // What triggers would write of each row is not what this is about.
    for (const table of TABLES)
      await client.query(`alter table farebox.${table} disable trigger user`);
    const numbers = `from generate_series(1, ${BUDGETS_MAX}) n`;
    for (const insert of [
      `budgets (ledger, consumer_id, number, window_unit, window_limit_micros, window_used_micros,
         window_began, window_notice_at)
       select $1, $2, n, 2, ${OLD}, 1, date_trunc('day', now(), 'UTC'), 4000000`,
      `budget_details (id, ledger, consumer_id, number, path, name) select uuidv7(), $1, $2, n, array[n], 'x'`,
      `spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four, developer)
       select uuidv7(), sha256(n::text::bytea), '${payer.accountId}', $1, $2, n, n, array[n], '', n`,
    ]) {
      await client.query(`insert into farebox.${insert} ${numbers}`, [
        payer.ledger,
        payer.consumerId,
      ]);
    }
    for (const table of TABLES)
      await client.query(`alter table farebox.${table} enable trigger user`);
    await client.query('analyze');
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('is set at once for all of them, with one entry in the audit log', async () => {
    const entries = async () => {
      const { rows } = await client.query<{ action: string }>(
        'select action from farebox.audit_entries order by number',
      );
      return rows.map(({ action }) => action);
    };
    const before = await entries();
    await changeAccountKeys(ledger.database, payer, { developerDayMicros: NEW });
    assert.deepEqual((await entries()).slice(before.length), ['account_keys.changed']);
    const { rows } = await client.query(
      `select window_limit_micros::int8 as limit, window_used_micros::int8 as used,
         window_notice_at::int8 as notice, count(*)::int as windows
       from farebox.budgets where consumer_id = $1 group by 1, 2, 3`,
      [payer.consumerId],
    );
    assert.deepEqual(rows, [
      { limit: String(NEW), used: '1', notice: '2400000', windows: BUDGETS_MAX },
    ]);
  });
});
