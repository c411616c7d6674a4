/** Operators see the oldest differences from Stripe, even if every top-up differs, as it does with a wrong account. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer } from '../../support/payer.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const DIFFERENCES = 10_000;
const SHOWN = 50;

describe('a ledger in which every top-up differs from Stripe', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    const payer = await newPayer(ledger.database);
    await client.query('alter table farebox.top_ups disable trigger user');
    await client.query(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros, opened_at,
         completed_at, seen_verdict, seen_at, payment_intent_id, seen_micros)
       select uuidv7(), $1, $2, $3, 'direct', 'completed', 10000000, now(), now(), 'paid', now(), 'pi_' || n, 10000000
       from generate_series(1, $4::int) n`,
      [payer.ledger, payer.consumerId, payer.accountId, DIFFERENCES],
    );
    await client.query(
      `insert into farebox.differences (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids, since)
       select id, 'not_paid', 0, 10000000, '{}', now() - row_number() over (order by id) * interval '1 second'
       from farebox.top_ups where payment_intent_id like 'pi\\_%'`,
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('has all of them listed, the oldest first', async () => {
    const all = await listDifferences(ledger.database);
    assert.equal(all.length, DIFFERENCES);
    const times = all.map(({ since }) => since);
    assert.ok(times.every((time, index) => index === 0 || time > (times[index - 1] ?? '')));
  });

  for (const statistics of ['without statistics', 'with statistics']) {
    it(`has the oldest listed ${statistics} without looking up the payments of the others`, async () => {
      if (statistics === 'with statistics') await client.query('analyze');
      const all = await listDifferences(ledger.database);
      const plans = await plansOf(ledger.database, client, async (database) => {
        const shown = await listDifferences(database, SHOWN);
        assert.equal(shown.length, SHOWN);
        assert.deepEqual(shown, all.slice(0, SHOWN));
      });
      assert.equal(rowsReadOf('top_ups', plans), SHOWN);
    });
  }
});
