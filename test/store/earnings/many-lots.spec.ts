/** Attribution of charges to top-ups when a consumer has very many lots, as refunds of charges leave them. */
import assert from 'node:assert/strict';
import { sql } from '../../../src/store/database.ts';
import { cutByLots, PAID_BY_TOP_UPS } from '../../../src/store/earnings/top-up-attribution.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';

const LOTS = 5_000;
const LOT_MICROS = 10;
const CHARGES = 40;
/** Each takes from two or three lots. */
const CHARGE_MICROS = 25;

interface Plan {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

describe('the attribution of charges', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
  });
  after(async () => {
    await harness?.close();
    await testDatabase?.drop();
  });

  it('reads the lots that a charge takes from, and not all earlier ones', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    const topUpId = await harness.topUp(consumer, LOTS * LOT_MICROS);
    await harness.client.query('delete from farebox.lots where consumer_id = $1', [
      consumer.consumer,
    ]);
    await harness.client.query(
      `insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
       select $1, $2, uuidv7(), n * $3::int8, (n + 1) * $3::int8, $4
       from generate_series(0, $5::int8 - 1) n`,
      [consumer.ledger, consumer.consumer, LOT_MICROS, topUpId, LOTS],
    );
    // The last charges before all is spent.
    const spent = LOTS * LOT_MICROS - CHARGES * CHARGE_MICROS;
    await harness.client.query('update farebox.consumers set spent_micros = $1 where id = $2', [
      spent,
      consumer.consumer,
    ]);
    await harness.client.query('analyze farebox.lots');
    const charge = { consumer, developer, amount: CHARGE_MICROS };
    await harness.charge(Array.from({ length: CHARGES }, () => charge));

    const ways = {
      'from the tail': sql.fragment`select * from (${cutByLots(sql.fragment`farebox.attribution_tail`)}) w`,
      // For doctor, a rebuild and an archive, which read every charge.
      'from the charges': PAID_BY_TOP_UPS,
    };
    for (const [way, cut] of Object.entries(ways)) {
      const paid = await harness.database.any(sql.unsafe`
        select top_up_id as id, sum(micros)::int8 as micros, sum(charges)::int8 as charges
        from (${cut}) w group by 1
      `);
      const taken = { id: topUpId, micros: CHARGES * CHARGE_MICROS, charges: CHARGES };
      assert.deepEqual(paid, [taken], way);
      const explained = await harness.database.oneFirst(sql.unsafe`
        explain (analyze, format json) ${cut}
      `);
      const [{ Plan: plan }] = explained as [{ Plan: Plan }];
      assert.ok(lotsReadBy(plan) <= 10 * CHARGES, `${way}: ${lotsReadBy(plan)} lots were read`);
    }
  });
});

function lotsReadBy(plan: Plan): number {
  const each = plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0);
  const own = plan['Relation Name'] === 'lots' ? each * plan['Actual Loops'] : 0;
  return (plan.Plans ?? []).reduce((sum, child) => sum + lotsReadBy(child), own);
}
