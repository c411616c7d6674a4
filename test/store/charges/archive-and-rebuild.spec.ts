/** A month is archived while the sums of earnings are rebuilt: its earnings stay, although its charges are gone. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { uuidFloor } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';
import { createTestDatabase, until, type TestDatabase } from '../../support/stack.ts';

const NOW = new Date();
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);
const MONTH = new Date(OLD_MS).toISOString().slice(0, 7);

describe('an archive beside a rebuild', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let reader: Client;
  /** Each developer, followed by its consumer, with a charge in the old month. */
  let late: readonly Party[];

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
    reader = new Client({ connectionString: testDatabase.url });
    await reader.connect();
    await ensureChargePartitions(testDatabase.url, OLD_MS);
    late = await harness.parties(4);
    for (const [developer, consumer] of [late.slice(0, 2), late.slice(2)]) {
      assert.ok(developer && consumer);
      await harness.topUp(consumer, 100);
      await harness.charge([{ consumer, developer, amount: 30, timeMs: OLD_MS + 1_000 }]);
    }
  });
  after(async () => {
    await reader?.end();
    await harness?.close();
    await testDatabase?.drop();
  });

  const isWaiting = (isDetaching: boolean) =>
    until(async () => {
      const { rowCount } = await harness.client.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and (query ~ 'detach partition') = $1`,
        [isDetaching],
      );
      return rowCount !== 0;
    });

  it('keeps the earnings of the month', async () => {
    const [developer, consumer] = await harness.parties(2);
    assert.ok(developer && consumer);
    await harness.topUp(consumer, 100);
    await harness.charge([{ consumer, developer, amount: 70, timeMs: OLD_MS + 1_000 }]);
    while ((await rollUp(harness.database)).hasMore);

    // Somebody reads the month, so that it cannot be detached yet.
    await reader.query('begin');
    await reader.query(`select from farebox.charges_${MONTH.replace('-', '_')}`);
    const archiving = archiveMonth(harness.database, MONTH, Date.now());
    await isWaiting(true);
    const rebuilding = rebuildRollups(harness.database);
    await isWaiting(false);
    await reader.query('commit');
    assert.equal((await archiving).kind, 'archived');
    await rebuilding;

    const { rows } = await harness.client.query(
      `select sum(amount_micros)::int as micros from farebox.earnings where span = 'all' and developer = $1`,
      [developer.developerNumber],
    );
    assert.deepEqual(rows, [{ micros: 70 }]);
    assert.deepEqual(await examineLedger(harness.database, { parts: ['earnings'] }), []);
  });

  for (const [party, isMovedFirst] of [false, true].entries()) {
    it(`keeps the sums right when a refund has a time in an archived month and is rolled up ${isMovedFirst ? 'before' : 'after'} the rebuild`, async () => {
      const [developer, consumer] = [late[party * 2], late[party * 2 + 1]];
      assert.ok(developer && consumer);
      await harness.charge([{ consumer, developer, amount: 40 }]);
      while ((await rollUp(harness.database)).hasMore);
      await harness.client.query(
        `insert into farebox.key_spending
           (ledger, consumer_id, spend_key, span, begins_at, developer, tool, amount_micros, charges)
         select $1, $2, 1, span, at, $3, 'search', 30, 1
         from (values ('day', to_timestamp($4)), ('all', '-infinity')) as s (span, at)`,
        [consumer.ledger, consumer.consumer, developer.developerNumber, OLD_MS / 1_000],
      );
      await refundByALateClock(developer, consumer);
      assert.deepEqual(await findings(), []);
      if (isMovedFirst) await rollUp(harness.database);
      await rebuildRollups(harness.database);
      while ((await rollUp(harness.database)).hasMore);
      const earned = await sumsOf('earnings', developer);
      assert.deepEqual(earned, [
        { span: 'all', isOld: true, micros: 50 },
        { span: 'day', isOld: false, micros: 40 },
        { span: 'day', isOld: true, micros: 10 },
      ]);
      assert.deepEqual(await sumsOf('key_spending', developer), [
        { span: 'all', isOld: true, micros: 10 },
        { span: 'day', isOld: true, micros: 10 },
      ]);
      assert.deepEqual(await findings(), []);
    });
  }

  /** The findings of the parts that compare sums. The second one may say that the spend key is planted. */
  async function findings() {
    const found = await examineLedger(harness.database, { parts: ['earnings', 'budgets'] });
    return found.filter(({ part, check }) => part === 'earnings' || check.includes('daily'));
  }

  /**
   * The refund of $0.00002 by a spend key gets a time in the archived month, in which the clock was, and
   * waits in the tail.
   */
  async function refundByALateClock(developer: Party, consumer: Party): Promise<void> {
    const { rows } = await harness.client.query<{ id: string }>(
      'select id from farebox.charges where consumer_id = $1',
      [consumer.consumer],
    );
    const { kind } = await refundCharge(harness.database, {
      developerNumber: developer.developerNumber,
      chargeId: rows[0]?.id ?? assert.fail(),
      askedMicros: asMicros(20),
      idempotencyKey: undefined,
    });
    assert.equal(kind, 'refunded');
    await harness.client.query(
      'update farebox.charge_refunds set id = $1, spend_key = 1 where consumer_id = $2',
      [uuidFloor(OLD_MS + 2_000), consumer.consumer],
    );
    await harness.client.query(
      `update farebox.earnings_tail set minute = to_timestamp($1), consumer_id = $2, spend_key = 1
       where developer = $3`,
      [OLD_MS / 1_000, consumer.consumer, developer.developerNumber],
    );
  }

  async function sumsOf(table: 'earnings' | 'key_spending', { developerNumber }: Party) {
    const { rows } = await harness.client.query(
      `select span, begins_at < to_timestamp($1) as "isOld", amount_micros::int as micros
       from farebox.${table} where span <> 'hour' and developer = $2 order by 1, 2`,
      [(OLD_MS + 40 * DAY_MS) / 1_000, developerNumber],
    );
    return rows;
  }
});
