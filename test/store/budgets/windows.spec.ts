/** Windows of budgets: where they begin and end, and that no clock but PostgreSQL's, read under the lock, decides. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { numberOfWindowUnit, WINDOW_UNITS, windowEnd } from '../../../src/domain/budget.ts';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { uuidFloor } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { findBudget } from '../../../src/store/budgets/budgets.ts';
import { changeBudget, setWindow } from '../../../src/store/budgets/change-budgets.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import { sql, type Database } from '../../../src/store/database.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import { capturing, placeAll, placing, postEntries, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { Random } from '../../support/random.ts';
import { openHarnesses, postDrafts, type BudgetHarness } from './budget-harness.ts';

/** Ends of days, months and years, a leap day, and clocks that are put forward and back in Europe and America. */
const EDGES = [
  '2026-11-22T00:00:00Z',
  '2026-12-01T00:00:00Z',
  '2027-01-01T00:00:00Z',
  '2028-02-29T00:00:00Z',
  '2028-03-01T00:00:00Z',
  '2026-03-29T01:00:00Z',
  '2026-10-25T01:00:00Z',
  '2026-11-01T06:00:00Z',
];

describe('the windows of budgets', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let harness: BudgetHarness;

  before(async () => {
    ledger = await openTestLedger(1);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    [harness] = (await openHarnesses(database, client, ledger.url, 1, 10)) as [BudgetHarness];
    await harness.addNode(new Random(5), 2_000);
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  for (const zone of ['UTC', 'Asia/Kathmandu', 'Europe/Berlin', 'America/New_York']) {
    it(`begin and end by the calendar in UTC, in a session of ${zone}`, async () => {
      await client.query(`set timezone = '${zone}'`);
      for (const edge of EDGES) {
        for (const ms of [-1, 0, 1]) {
          const at = new Date(Date.parse(edge) + ms);
          const { rows } = await client.query<{ began: Date[] }>(
            'select farebox.windows_at($1) as began',
            [at],
          );
          for (const unit of WINDOW_UNITS) {
            const began = rows[0]?.began[numberOfWindowUnit(unit) - 1] ?? assert.fail();
            const ends = windowEnd(unit, began.toISOString());
            const where = `${unit} of ${at.toISOString()}: ${began.toISOString()} to ${ends}`;
            assert.ok(began <= at && at < new Date(ends), where);
            // Also of one that began later than its hour or day, because it was set then.
            assert.equal(windowEnd(unit, at.toISOString()), ends, where);
            // The next one begins where this one ends.
            const next = await client.query<{ began: Date[] }>(
              'select farebox.windows_at($1) as began',
              [ends],
            );
            const follows = next.rows[0]?.began[numberOfWindowUnit(unit) - 1]?.toISOString();
            assert.equal(follows, ends, where);
            if (unit === 'week') assert.equal(began.getUTCDay(), 1, where);
          }
        }
      }
    });
  }

  it('of several budgets that are set together begin at one time', async () => {
    for (let count = 0; count < 3; count += 1) await harness.addNode(new Random(6), 2_000);
    await database.transaction((tx) =>
      setWindow(
        tx,
        harness.view,
        sql.fragment`(select number from farebox.budgets where consumer_id = ${harness.view.consumerId})`,
        { unit: 'month', limitMicros: asMicros(1_000) },
      ),
    );
    const { rows } = await client.query(
      `select count(distinct window_began)::int as times, count(*) > 1 as "areSeveral"
       from farebox.budgets where consumer_id = $1`,
      [harness.view.consumerId],
    );
    assert.deepEqual(rows, [{ times: 1, areSeveral: true }]);
  });

  it('count and give back by what came before, not by the clocks of the processes that made the charges', async () => {
    const [node] = harness.model.nodes;
    const [, key] = harness.model.keys;
    assert.ok(node && key);
    const window = { unit: 'hour' as const, limitMicros: asMicros(1_000) };
    await changeBudget(database, harness.view, node.id, { limitMicros: null, window });
    await client.query('update farebox.budget_details set max_per_call_micros = null');
    /** By a process whose clock is this much ahead. */
    const charge = async (aheadMs: number, micros: number) => {
      const id = uuidFloor(Date.now() + aheadMs).slice(0, -12) + randomBytes(6).toString('hex');
      const [made] = await postDrafts(database, [{ ...harness.draft(key, micros), id }]);
      return { id, kind: made?.kind };
    };
    const counted = async () =>
      (await findBudget(database, harness.view, node.id))?.window?.usedMicros;
    const refund = (chargeId: string) =>
      refundCharge(database, {
        developerNumber: 1,
        chargeId,
        askedMicros: null,
        idempotencyKey: undefined,
      });

    const before = await charge(3 * HOUR_MS, 700);
    assert.deepEqual([before.kind, await counted()], ['posted', 700]);
    assert.equal((await charge(0, 400)).kind, 'limit_reached');
    await harness.turnWindows();
    // A process that is hours behind charges in the new window.
    const behind = await charge(-3 * HOUR_MS, 600);
    assert.deepEqual([behind.kind, await counted()], ['posted', 600]);
    // Its id is the newest of all, and the old window counted it.
    assert.equal((await refund(before.id)).kind, 'refunded');
    assert.equal(await counted(), 600);
    assert.equal((await charge(3 * HOUR_MS, 500)).kind, 'limit_reached');
    assert.equal((await refund(behind.id)).kind, 'refunded');
    assert.equal(await counted(), 0);
    assert.equal((await charge(-3 * HOUR_MS, 1_000)).kind, 'posted');
    assert.equal((await charge(0, 1)).kind, 'limit_reached');
  });

  it('that begin again after the clock was set back let holds end that only an earlier window counted', async () => {
    const [, key] = harness.model.keys;
    const [node] = harness.model.nodes;
    assert.ok(node && key);
    const window = { unit: 'hour' as const, limitMicros: asMicros(1_000) };
    const changed = () => changeBudget(database, harness.view, node.id, { window });
    const { spend } = harness.draft(key, 1);
    await harness.turnWindows();
    await changed();
    const holds = await placeAll(
      database,
      [1, 2, 3].map(() => ({ ...placing(harness.view, 200), spend })),
    );
    const [first = '', second = '', third = ''] = holds;
    // As if they had been placed while the clock was ahead.
    await client.query(`update farebox.holds set placed_at = placed_at + interval '2 hours'`);
    await client.query(
      `update farebox.budgets set window_began = window_began + interval '2 hours'`,
    );
    await changed();
    const counted = async () =>
      (await findBudget(database, harness.view, node.id))?.window?.usedMicros;
    assert.equal(await counted(), 0);
    const [released, captured] = await postEntries(database, [releasing(first), capturing(second)]);
    assert.equal(released?.kind, 'done');
    assert.ok(captured?.kind === 'done');
    const refunded = await refundCharge(database, {
      developerNumber: 1,
      chargeId: captured.chargeId,
      askedMicros: null,
      idempotencyKey: undefined,
    });
    assert.equal(refunded.kind, 'refunded');
    await client.query(`update farebox.holds set expires_at = now() where id = $1`, [third]);
    await client.query('update farebox.hold_expiries set due_at = now()');
    assert.deepEqual(await expireHolds(database), { holds: 1, hasMore: false });
    assert.equal(await counted(), 0);
  });

  it('are named by doctor until they end when they were given back what they did not count', async () => {
    const [, key] = harness.model.keys;
    const [node] = harness.model.nodes;
    assert.ok(node && key);
    const window = { unit: 'month' as const, limitMicros: asMicros(1_000) };
    await harness.turnWindows();
    await changeBudget(database, harness.view, node.id, { window });
    const { spend } = harness.draft(key, 1);
    const place = { ...placing(harness.view, 200), spend };
    const [hold = ''] = await placeAll(database, [place]);
    // As if it had been placed while the clock was ahead, and the owner had set the window again.
    await client.query(
      `update farebox.holds set placed_at = placed_at + interval '2 hours' where id = $1`,
      [hold],
    );
    await client.query(
      `update farebox.budgets set window_began = window_began + interval '1 hour'`,
    );
    await changeBudget(database, harness.view, node.id, { window });
    const [charged] = await postDrafts(database, [harness.draft(key, 300)]);
    assert.equal(charged?.kind, 'posted');
    await postEntries(database, [releasing(hold)]);
    const found = async () =>
      (await examineLedger(database, { parts: ['budgets'] })).map(({ check }) => check);
    assert.deepEqual(await found(), [
      'a window counted what its keys charged and held since it began',
    ]);
    // Nothing is charged any more, so no charge begins the next window.
    await harness.turnWindows();
    assert.deepEqual(await found(), []);
  });
});
