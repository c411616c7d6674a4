/** What is read of a consumer who has very many lots, nearly all of them spent. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { asMicros } from '../../../src/domain/money.ts';
import { listCreditsOfCharge } from '../../../src/store/balance/credits-of-charge.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { newDraft, post } from '../../support/charge-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const LOTS = 5_000;
const LOT_MICROS = 10;
const TOP_UP_MICROS = 10_000_000;
const REFUND_MICROS = 1_000_000;
/** Takes from three lots. */
const CHARGE_MICROS = 25;

describe('a consumer with many spent lots', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;
  let topUpId: string;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    topUpId = await payer.topUp(TOP_UP_MICROS);
    const of = [payer.ledger, payer.consumerId];
    // The refunds of charges before the top-up, and what they were spent on.
    const refunded = LOTS * LOT_MICROS;
    await client.query(
      'update farebox.lots set from_micros = from_micros + $3, to_micros = to_micros + $3 where ledger = $1 and consumer_id = $2',
      [...of, refunded],
    );
    await client.query(
      `with refunds as (
         insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros)
         select $1, $2, uuidv7(interval '-1 day'), 'charge_refund', $3 from generate_series(1, $4) returning id
       )
       insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros)
       select $1, $2, id, (n - 1) * $3::int8, n * $3::int8 from (select id, row_number() over () as n from refunds) r`,
      [...of, LOT_MICROS, LOTS],
    );
    await client.query(
      `insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros)
       select $1, uuidv7(), uuidv7(), 0, $2 from generate_series(1, $3)`,
      [payer.ledger, LOT_MICROS, LOTS],
    );
    await client.query(
      `update farebox.consumers set credited_micros = credited_micros + $3, spent_micros = $3 - $4
       where ledger = $1 and id = $2`,
      [...of, refunded, 3 * LOT_MICROS],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  for (const statistics of ['without statistics', 'with statistics']) {
    describe(statistics, () => {
      before(() => (statistics === 'with statistics' ? client.query('analyze') : undefined));

      it('is refunded without a read of the spent ones', async () => {
        const plans = await plansOf(ledger.database, client, async (database) => {
          const { kind } = await requestRefund(database, topUpId, asMicros(REFUND_MICROS));
          assert.equal(kind, 'requested');
        });
        assert.ok(rowsReadOf('lots', plans) < 50, `${rowsReadOf('lots', plans)} lots`);
      });
    });
  }

  it('sees what paid a charge without a read of the others', async () => {
    const draft = newDraft(payer, CHARGE_MICROS);
    const [outcome] = await post(ledger.database, [draft]);
    assert.equal(outcome?.kind, 'posted');
    const plans = await plansOf(ledger.database, client, async (database) => {
      const credits = await listCreditsOfCharge(database, payer, draft.id);
      assert.deepEqual(
        credits.map(({ source, paidMicros }) => [source, paidMicros]),
        [10, 10, 5].map((paidMicros) => ['charge_refund', paidMicros]),
      );
    });
    assert.ok(rowsReadOf('lots', plans) < 10, `${rowsReadOf('lots', plans)} lots`);
  });
});
