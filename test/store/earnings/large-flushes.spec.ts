/** The tails of a flush that charged a thousand consumers: their arrays are so long that they are stored compressed. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { spentByFlushes } from '../../../src/store/budgets/waiting-spending.ts';
import { sql, type Connection } from '../../../src/store/database.ts';
import { cutByLots } from '../../../src/store/earnings/top-up-attribution.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { blocksOf, plansOf } from '../query-plans.ts';

const CHARGES = 1_000;

describe('the tail of a large flush', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  /** Each charge is of another consumer. */
  const GROUPS = `array_agg(1::int2), array_agg(uuidv7()), array_agg(n order by n)`;

  for (const [tail, columns, values, read] of [
    [
      'attribution_tail',
      'ledgers, consumers, charge_group, spent_before, through, developers, amounts',
      `${GROUPS}, array_agg(0), array_agg(1), array_agg(1), array_agg(1)`,
      cutByLots(sql.fragment`farebox.attribution_tail`),
    ],
    [
      'key_spending_tail',
      'ledger, ledgers, consumers, charge_group, spend_keys, developers, tools, days, amounts',
      `1, ${GROUPS}, array_agg(1), array_agg(1), array_agg('search'::text), array_agg(date '2026-03-15'), array_agg(1)`,
      spentByFlushes(sql.fragment`farebox.key_spending_tail`),
    ],
  ] as const) {
    it(`is read from ${tail} once, and not again for each of its charges`, async () => {
      await client.query(
        `insert into farebox.${tail} (${columns}) select ${values} from generate_series(1, ${CHARGES}) n`,
      );
      const [plan] = await plansOf(ledger.database, client, (connection: Connection) =>
        connection.any(sql.unsafe`select count(*) from (${read}) r`),
      );
      assert.ok(plan);
      // Besides the arrays, the attribution looks up a lot of each consumer, of whom none has any.
      assert.ok(blocksOf(plan) < 3 * CHARGES, `${blocksOf(plan)} blocks`);
    });
  }
});
