/** What is read to find the few top-ups that are still open among very many that have expired. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readBacklog } from '../../../src/store/operators/backlog.ts';
import { listUnsettled } from '../../../src/store/top-ups/reconciliation.ts';
import { listStuck } from '../../../src/store/operators/stuck.ts';
import { listWaiting } from '../../../src/store/operators/waiting.ts';
import type { Database } from '../../../src/store/database.ts';
import { FIRST_ID } from '../../../src/store/in-steps.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer } from '../../support/payer.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const EXPIRED = 10_000;
const READ_MAX = 20;

describe('an open top-up among many that have expired', () => {
  let ledger: TestLedger;
  let client: Client;
  let openId: string;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    const payer = await newPayer(ledger.database);
    // Two days old: nobody paid it, and Stripe has not said so yet.
    const { rows } = await client.query<{ id: string }>(
      `update farebox.top_ups set id = uuidv7(interval '-2 days'), created_at = now() - interval '2 days',
         opened_at = now() - interval '2 days'
       where id = $1 returning id`,
      [await payer.open(10_000_000)],
    );
    openId = rows[0]?.id ?? '';
    await client.query('alter table farebox.top_ups disable trigger user');
    // Half of them ended before Stripe's answers were kept.
    await client.query(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros, created_at,
         opened_at, updated_at, seen_verdict, seen_at)
       select uuidv7(interval '-35 days'), $1, $2, $3, 'checkout', 'expired', 1000000, t.at, t.at, t.at,
         case when n % 2 = 0 then 'expired' end, case when n % 2 = 0 then t.at end
       from generate_series(1, $4::int) n, (select now() - interval '35 days' as at) t`,
      [payer.ledger, payer.consumerId, payer.accountId, EXPIRED],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const readers: Readonly<Record<string, (database: Database) => Promise<unknown>>> = {
    'by the page of stuck work': async (database) =>
      (await listStuck(database, 20)).map(({ subjectId }) => subjectId),
    'by the page of waiting work': async (database) =>
      (await listWaiting(database, 20))
        .filter(({ what }) => what === 'top_ups_pending')
        .map(({ subjectId }) => subjectId),
    'by the comparison with Stripe': (database) =>
      listUnsettled(database, { afterId: FIRST_ID, limit: 100 }),
    'by the metrics': async (database) => {
      const { topUps } = await readBacklog(database);
      const older = topUps.find(({ state, age }) => state === 'pending' && age === 'older');
      return older?.count === 1 ? [openId] : [];
    },
  };

  for (const statistics of ['without statistics', 'with statistics']) {
    describe(`is found ${statistics}`, () => {
      before(() => (statistics === 'with statistics' ? client.query('analyze') : undefined));

      for (const [by, find] of Object.entries(readers)) {
        it(by, async () => {
          const plans = await plansOf(ledger.database, client, async (database) => {
            assert.deepEqual(await find(database), [openId]);
          });
          const rows = rowsReadOf('top_ups', plans);
          assert.ok(rows > 0 && rows < READ_MAX, `${rows} top-ups were read`);
        });
      }
    });
  }
});
