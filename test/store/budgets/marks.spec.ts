/**
 * The marks of budgets' limits: exactly one event for each mark and window, under concurrent spends and near
 * the marks.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { BUDGET_MARKS_PERCENT } from '../../../src/domain/budget.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { EVENT_DATA } from '../../../src/schemas/events.ts';
import { changeBudget } from '../../../src/store/budgets/change-budgets.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import type { Database } from '../../../src/store/database.ts';
import { assertShape } from '../../support/contract.ts';
import { postEntries, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { Random, SEED } from '../../support/random.ts';
import { openHarnesses, postDrafts, type BudgetHarness } from './budget-harness.ts';
import type { ModelKey, ModelNode } from './budget-model.ts';

interface Told {
  readonly budgetId: string;
  readonly scope: 'total' | 'window';
  readonly percent: number;
  readonly used: number;
  readonly limit: number;
  readonly resetsAt: string | null;
}

describe('the marks of budgets', () => {
  const random = new Random(SEED);
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let fresh: BudgetHarness[];
  let harness: BudgetHarness;

  before(async () => {
    ledger = await openTestLedger(8);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    fresh = await openHarnesses(database, client, ledger.url, 7, 1);
  });
  beforeEach(() => {
    harness = fresh.pop() ?? assert.fail();
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('make no event below 80 %, and one at 80 % and at 100 %, with the form of the API', async () => {
    const node = await nodeWith({ limit: 1_000 });
    const key = keyOf(node);
    await spend(key, 799);
    assert.deepEqual(await told(), []);
    await spend(key, 1);
    await spend(key, 199);
    await spend(key, 1);
    const events = await told();
    for (const event of events) assertShape(event, EVENT_DATA['budget.threshold_reached']);
    const budgetId = wireId('budget', node.id);
    const total = { budgetId, scope: 'total', limit: 0.001, resetsAt: null };
    assert.deepEqual(events, [
      { ...total, percent: 80, used: 0.0008 },
      { ...total, percent: 100, used: 0.001 },
    ]);
  });

  it('make two events when one spend passes both, and none when the spend is refused', async () => {
    const node = await nodeWith({ limit: 1_000 });
    await spend(keyOf(node), 700);
    await spend(keyOf(node), 301);
    assert.deepEqual(await marks(), []);
    await spend(keyOf(node), 300);
    assert.deepEqual(await marks(), ['total 80', 'total 100']);
  });

  it('are not told when a node above refuses in the same statement', async () => {
    const above = await nodeWith({ limit: 500 });
    const below = await nodeWith({ limit: 1_000 }, above);
    await spend(keyOf(below), 900);
    assert.deepEqual(await marks(), []);
    await change(above, { limitMicros: asMicros(5_000) });
    await spend(keyOf(below), 900);
    assert.deepEqual(await marks(), ['total 80']);
  });

  it('make one event while refunds and holds move the use up and down across them', async () => {
    const key = keyOf(await nodeWith({ limit: 1_000 }));
    await spend(key, 700);
    for (let round = 0; round < 3; round += 1) {
      const chargeId = await spend(key, 150);
      await refundCharge(database, {
        developerNumber: 1,
        chargeId,
        askedMicros: null,
        idempotencyKey: undefined,
      });
      const hold = { ...harness.draft(key, 200), kind: 'place', seconds: 600 } as const;
      const [placed] = await postEntries(database, [hold]);
      assert.ok(placed?.kind === 'done');
      await postEntries(database, [releasing(placed.hold.id)]);
    }
    assert.deepEqual(await marks(), ['total 80']);
  });

  it('are armed again by a new window and by a changed limit, above what is used', async () => {
    const node = await nodeWith({ limit: null, window: 1_000 });
    const key = keyOf(node);
    await spend(key, 1_000);
    assert.deepEqual(await marks(), ['window 80', 'window 100']);
    await harness.turnWindows();
    await spend(key, 850);
    assert.deepEqual(await marks(), ['window 80']);
    const [{ resets_at: resetsAt } = assert.fail()] = (
      await client.query<{ resets_at: string }>(
        `select farebox.wire_time((date_trunc('day', now() at time zone 'UTC') + interval '1 day')
           at time zone 'UTC') as resets_at`,
      )
    ).rows;
    assert.equal(last.at(-1)?.resetsAt, resetsAt);
    await change(node, { window: { unit: 'day', limitMicros: asMicros(2_000) } });
    await spend(key, 749);
    assert.deepEqual(await marks(), []);
    await spend(key, 1);
    assert.deepEqual(await marks(), ['window 80']);
    await change(node, { limitMicros: asMicros(2_700) });
    await spend(key, 100);
    assert.deepEqual(await marks(), ['total 100']);
  });

  it('are armed again when the owner sets a window anew that began while the clock was ahead', async () => {
    const node = await nodeWith({ limit: null, window: 1_000 });
    const key = keyOf(node);
    await client.query(
      `update farebox.budgets set window_began = window_began + interval '2 days' where consumer_id = $1`,
      [harness.view.consumerId],
    );
    await spend(key, 1_000);
    assert.deepEqual(await marks(), ['window 80', 'window 100']);
    await change(node, { window: { unit: 'day', limitMicros: asMicros(1_000) } });
    await spend(key, 850);
    assert.deepEqual(await marks(), ['window 80']);
  });

  it(`are told exactly once under concurrent spends of eight connections (SEED=${SEED})`, async () => {
    for (let round = 0; round < 6; round += 1) {
      const limit = random.between(1, 3_000);
      const above = await nodeWith({ limit, window: random.between(1, 3_000) });
      const below = await nodeWith({ limit: random.between(1, 3_000), window: limit }, above);
      await Promise.all(
        Array.from({ length: 40 }, () => {
          const drafts = Array.from({ length: random.between(1, 3) }, () =>
            harness.draft(keyOf(random.pick([above, below])), random.between(1, 120)),
          );
          return postDrafts(database, drafts);
        }),
      );
      const events = await told();
      for (const node of [above, below]) {
        const found = events
          .filter(({ budgetId }) => budgetId === wireId('budget', node.id))
          .map(({ scope, percent }) => `${scope} ${percent}`);
        assert.deepEqual(found.toSorted(), (await reached(node)).toSorted());
      }
    }
  });

  /** What the counters in the database have reached, when nothing was given back. */
  async function reached(node: ModelNode): Promise<string[]> {
    const { rows } = await client.query<
      Record<'used' | 'most' | 'in_window' | 'most_in_window', string>
    >(
      `select b.used_micros as used, b.limit_micros as most, b.window_used_micros as in_window,
         b.window_limit_micros as most_in_window
       from farebox.budgets b where b.consumer_id = $1 and b.number = $2`,
      [harness.view.consumerId, node.number],
    );
    const found = rows[0] ?? assert.fail();
    return [
      ...marksIn('total', found.used, found.most),
      ...marksIn('window', found.in_window, found.most_in_window),
    ];
  }

  let last: Told[] = [];

  /** In order, and not again. */
  async function told(): Promise<Told[]> {
    const { rows } = await client.query<{ data: Told }>(
      `with taken as (
         delete from farebox.events e using farebox.accounts a
         where a.id = e.account_id and a.consumer_id = $1 and e.type = 'budget.threshold_reached'
         returning e.id, e.data
       ) select data from taken order by id`,
      [harness.view.consumerId],
    );
    last = rows.map(({ data }) => data);
    return last;
  }

  async function marks(): Promise<string[]> {
    return (await told()).map(({ scope, percent }) => `${scope} ${percent}`);
  }

  async function nodeWith(
    limits: { readonly limit: number | null; readonly window?: number },
    parent: ModelNode | null = null,
  ): Promise<ModelNode> {
    const node = await harness.addNodeWith(parent, {
      limitMicros: limits.limit === null ? null : asMicros(limits.limit),
      window:
        limits.window === undefined ? null : { unit: 'day', limitMicros: asMicros(limits.window) },
      maxPerCallMicros: null,
    });
    return node ?? assert.fail('its parent is closed');
  }

  function keyOf(node: ModelNode): ModelKey {
    return harness.model.keys.find((key) => key.node === node) ?? assert.fail();
  }

  async function spend(key: ModelKey, micros: number): Promise<string> {
    const draft = harness.draft(key, micros);
    await postDrafts(database, [draft]);
    return draft.id;
  }

  async function change(node: ModelNode, changes: Parameters<typeof changeBudget>[3]) {
    const { kind } = await changeBudget(database, harness.view, node.id, changes);
    assert.equal(kind, 'changed');
  }
});

function marksIn(scope: Told['scope'], used: string, limit: string): string[] {
  return BUDGET_MARKS_PERCENT.filter(
    (percent) => Number(used) * 100 >= Number(limit) * percent,
  ).map((percent) => `${scope} ${percent}`);
}
