/** Which of a consumer's refunds a query reads to add up the usage of one tool. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ClosedCharges } from '../../../src/store/charges/closed-charges.ts';
import { sumConsumerUsage } from '../../../src/store/charges/list-charges.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const REFUNDS = 5_000;
/** One of a hundred. */
const OF_TOOL = REFUNDS / 100;

describe('the usage of one tool by a consumer with many refunds', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    // Each would be an event.
    await client.query('alter table farebox.charge_refunds disable trigger user');
    await client.query(
      `insert into farebox.charge_refunds
         (ledger, consumer_id, id, charge_id, developer, tool, amount_micros, refunded_micros, charge_micros, spent_micros)
       select $1, $2, uuidv7(), uuidv7(), 1, case when n % 100 = 0 then 'rare' else 'often' end, 2, 2, 2, 2
       from generate_series(1, $3::int) n`,
      [payer.ledger, payer.consumerId, REFUNDS],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  for (const statistics of ['without statistics', 'with statistics']) {
    it(`reads the refunds of that tool, ${statistics}`, async () => {
      if (statistics === 'with statistics') await client.query('analyze farebox.charge_refunds');
      const plans = await plansOf(ledger.database, client, async (connection) => {
        const used = await sumConsumerUsage(connection, new ClosedCharges(), payer, {
          tool: 'rare',
        });
        assert.equal(used, -2 * OF_TOOL);
      });
      assert.equal(rowsReadOf('charge_refunds', plans), OF_TOOL);
    });
  }
});
