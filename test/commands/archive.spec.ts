/** `farebox archive` refuses books with a wrong amount, but not those that show forever that a clock was set back. */
import assert from 'node:assert/strict';
import { DAY_MS, HOUR_MS } from '../../src/domain/durations.ts';
import { uuidOf, wireId } from '../../src/domain/ids.ts';
import { examineLedger } from '../../src/store/doctor/ledger-checks.ts';
import { ensureChargePartitions } from '../../src/store/charges/partitions.ts';
import { rebuildRollups, rollUp } from '../../src/store/earnings/rollups.ts';
import { closeBudget, makeBudget } from '../support/budget-requests.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../support/earnings-harness.ts';
import { call } from '../support/http.ts';
import { farebox } from '../support/stack.ts';

const NOW = new Date();
const OLDEST_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 7);
const OLDEST = new Date(OLDEST_MS).toISOString().slice(0, 7);
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);
const OLD = new Date(OLD_MS).toISOString().slice(0, 7);
const NEXT_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 5);
const NEXT = new Date(NEXT_MS).toISOString().slice(0, 7);

describe('farebox archive', () => {
  let api: TestApi;
  let harness: EarningsHarness;
  let consumer: Party;
  let developer: Party;

  before(async () => {
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
    await ensureChargePartitions(api.databaseUrl, OLDEST_MS);
    await ensureChargePartitions(api.databaseUrl, OLD_MS);
    [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 90_000_000);
  });
  after(async () => {
    await harness?.close();
    await api?.stop();
  });

  const charge = (amount: number, timeMs: number) =>
    harness.charge([{ consumer, developer, amount, timeMs }]);

  const addToSpent = (micros: number) =>
    api.sql.query('update farebox.consumers set spent_micros = spent_micros + $1 where id = $2', [
      micros,
      consumer.consumer,
    ]);

  const archive = (month = OLD) => farebox(['archive', '--month', month], { env: api.env });

  /**
   * The clock was three days ahead: one charge comes after a charge with a later time, and one was refunded
   * before its own time.
   */
  async function clockWasSetBack(): Promise<void> {
    await charge(2_000_000, Date.now() - HOUR_MS);
    await charge(3_000_000, Date.now() - 3 * DAY_MS);
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.charges where amount_micros = 2000000',
    );
    const id = wireId('charge', (rows[0] ?? assert.fail()).id);
    const { status } = await call(api, 'POST', `/v1/charges/${id}/refund`, {
      key: developer.developerKey,
      body: { amount: 1 },
    });
    assert.equal(status, 201);
    await api.sql.query(`
      with refunded as (update farebox.charge_refunds set id = uuidv7('-2 hours') returning id), moved as (
        update farebox.movements set id = refunded.id, created_at = uuid_extract_timestamp(refunded.id)
        from refunded where kind = 'charge_refund' returning old.id as before, new.id as after
      )
      update farebox.lots set movement_id = after from moved where movement_id = before
    `);
    while ((await rollUp(harness.database)).hasMore);
    await rebuildRollups(harness.database);
  }

  it('archives nothing while the figures of a budget are wrong, unless it is closed', async () => {
    const budget = await makeBudget(api, consumer.consumerKey);
    await charge(1_000_000, OLDEST_MS);
    while ((await rollUp(harness.database)).hasMore);
    await api.sql.query('update farebox.budgets set used_micros = 1');
    const wrong = async () => {
      const found = await examineLedger(harness.database, { parts: ['budgets'] });
      return found.filter(({ subject }) => subject === `budget ${uuidOf('budget', budget.id)}`);
    };
    const found = await wrong();
    assert.ok(found.length > 0);
    await assert.rejects(archive(OLDEST), /Nothing was archived: a budget used what its keys/);
    await closeBudget(api, consumer.consumerKey, budget.id);
    assert.match(await archive(OLDEST), new RegExp(`Archived 1 charges of ${OLDEST}`));
    assert.deepEqual(await wrong(), found, 'doctor still names it');
    await api.sql.query('update farebox.budgets set used_micros = 0');
  });

  it('archives nothing while an amount is wrong', async () => {
    await charge(1_000_000, OLD_MS);
    await addToSpent(1);
    await assert.rejects(archive(), /Nothing was archived: spent is the sum of charges fails/);
    await addToSpent(-1);
  });

  it('archives a month after the clock was set back, although doctor will always name the charges made then', async () => {
    await clockWasSetBack();
    const parts = ['holds', 'budgets', 'charges', 'earnings'] as const;
    const findings = await examineLedger(harness.database, { parts });
    assert.deepEqual(
      findings.map(({ check }) => check),
      ['charges are in the order of their times', 'a refund of a charge was made after the charge'],
    );
    assert.match(await archive(), new RegExp(`Archived 1 charges of ${OLD}`));
    assert.deepEqual(await examineLedger(harness.database, { parts }), findings);
  });

  it('archives a month in which one key made two charges only once one of them is refunded', async () => {
    await charge(4_000_000, NEXT_MS + HOUR_MS);
    await charge(4_000_000, NEXT_MS + 3 * DAY_MS);
    while ((await rollUp(harness.database)).hasMore);
    const { rows } = await api.sql.query<{ id: string }>(
      `update farebox.charges set idempotency_hash = 1, request_fingerprint = 1
        where amount_micros = 4000000 returning id`,
    );
    const refused =
      /Nothing was archived: an idempotency key made at most one charge that is not refunded fails/;
    await assert.rejects(archive(NEXT), refused);
    const id = wireId('charge', (rows[0] ?? assert.fail()).id);
    const refund = async (body: object) => {
      const { status } = await call(api, 'POST', `/v1/charges/${id}/refund`, {
        key: developer.developerKey,
        body,
      });
      assert.equal(status, 201);
    };
    await refund({ amount: 1 });
    await assert.rejects(archive(NEXT), refused);
    await refund({});
    assert.match(await archive(NEXT), new RegExp(`Archived 2 charges of ${NEXT}`));
  });
});
