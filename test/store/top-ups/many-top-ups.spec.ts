/** What an automatic top-up reads of an account that has been topped up very often: what still matters, and no more. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Database } from '../../../src/store/database.ts';
import { readConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { isCardRefused } from '../../../src/store/top-ups/payment-evidence.ts';
import { findTaxedCustomer } from '../../../src/store/top-ups/processor-customers.ts';
import { findDeclinedWait } from '../../../src/store/top-ups/declines.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const OLD = 10_000;
const AMOUNT = 10_000_000;
const READ_MAX = 20;

describe('an account with many old top-ups', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    await client.query('alter table farebox.top_ups disable trigger user');
    await client.query(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, automatic, amount_micros, created_at,
         opened_at, completed_at, updated_at, seen_verdict, seen_at, payment_intent_id, seen_micros)
       select uuidv7(-t.ago), $1, $2, $3, 'direct', 'completed', true, $4, t.at, t.at, t.at, t.at, 'paid', t.at, 'pi_' || n, $4
       from generate_series(1, $5::int) n
       cross join lateral (select interval '41 days' + n * interval '1 hour' as ago) a
       cross join lateral (select a.ago, now() - a.ago as at) t`,
      [payer.ledger, payer.consumerId, payer.accountId, AMOUNT, OLD],
    );
    // Declined just now, by a card that is never to be charged again, as often as one hour allows.
    await client.query(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros, opened_at, seen_verdict,
         seen_failure_code, seen_at, payment_intent_id, refused_card_id)
       select uuidv7(), $1, $2, $3, 'direct', 'failed', $4, now(), 'failed', 'card_declined', now(), 'pi_declined_' || n,
         'pm_refused'
       from generate_series(1, 5) n`,
      [payer.ledger, payer.consumerId, payer.accountId, AMOUNT],
    );
    await payer.topUp(AMOUNT);
    await client.query(
      `update farebox.top_ups set completed_at = now() - interval '2 hours' where consumer_id = $1 and method = 'checkout'`,
      [payer.consumerId],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const reads: Readonly<Record<string, (database: Database) => Promise<void>>> = {
    'what the month took': async (database) => {
      assert.equal((await readConsent(database, payer.consumerId)).takenMicros, 0);
    },
    'the last declines': async (database) => {
      assert.ok((await findDeclinedWait(database, payer.consumerId)) > 0);
    },
    'cards that were declined permanently': async (database) => {
      assert.ok(await isCardRefused(database, payer.consumerId, 'pm_refused'));
      assert.ok(!(await isCardRefused(database, payer.consumerId, 'pm_other')));
    },
    'the last checkout': async (database) => {
      assert.notEqual((await findTaxedCustomer(database, payer.accountId)).paidAt, null);
    },
  };

  for (const statistics of ['without statistics', 'with statistics']) {
    describe(`knows ${statistics}`, () => {
      before(() => (statistics === 'with statistics' ? client.query('analyze') : undefined));

      for (const [what, read] of Object.entries(reads)) {
        it(what, async () => {
          const plans = await plansOf(ledger.database, client, read);
          const rows = rowsReadOf('top_ups', plans);
          assert.ok(rows < READ_MAX, `${rows} top-ups were read`);
        });
      }
    });
  }
});
