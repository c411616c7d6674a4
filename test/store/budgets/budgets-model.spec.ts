/**
 * Random trees of budgets under charges, holds, captures, releases, expiries, refunds, closings and changed
 * limits, from many connections at once, against a plain model: every node comes to what the model says, to
 * the micro-dollar, and what happens alone is decided as the model decides it. BUDGET_SPENDS says how many;
 * `npm run test:budgets` makes many.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { Client } from 'pg';
import { asMicros } from '../../../src/domain/money.ts';
import { OVER_MODES } from '../../../src/domain/hold.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import type { ChargeOutcome } from '../../../src/store/charges/post-charges.ts';
import type { Database } from '../../../src/store/database.ts';
import { rebuildRollups } from '../../../src/store/earnings/rollups.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import type { HoldOutcome } from '../../../src/store/holds/hold-entry.ts';
import { capturing, postEntries, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { Random } from '../../support/random.ts';
import { untilHourIsYoung } from '../../support/until-hour-is-young.ts';
import { openHarnesses, postDrafts, type BudgetHarness } from './budget-harness.ts';
import type { Capture, ModelCharge, ModelHold, Verdict } from './budget-model.ts';

const SPENDS = Number(process.env['BUDGET_SPENDS'] ?? 1_200);
/** What happens together is not decided by the seed alone, so a rare outcome may take longer to come. */
const SPENDS_MAX = 10 * SPENDS;
const CONSUMERS = 3;
const NODES_MAX = 40;
/** Waves and flushes of a long run are larger, or most of its time would go to what is between them. */
const IS_LONG = SPENDS > 10_000;
const TOGETHER = IS_LONG ? 1_500 : 60;
const FLUSHES = IS_LONG ? [1, 3, 40] : [1, 1, 3];
/** So that some consumers run out of money too. */
const DOLLARS = Math.ceil(SPENDS / 100_000);
/** Limits are of this order, so that they are reached all the time. */
const LIMIT_MOST = Math.max(2_000, SPENDS);
const AMOUNT_MOST = 60;

type Result = { readonly kind: string };
/** What is done at once with the rest of its wave. Returns what was done, for the model. */
type Step = () => Promise<() => void>;

describe('budgets under everything at once', function () {
  this.timeout(600_000 + SPENDS_MAX * 20);
  const seed = Number(process.env['SEED'] ?? randomInt(2 ** 32));
  const random = new Random(seed);
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let harnesses: BudgetHarness[];
  const seen = new Map<string, number>();
  const missing = () => EXPECTED.filter((kind) => !seen.has(kind));

  before(async function () {
    await untilHourIsYoung();
    ledger = await openTestLedger(10);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    harnesses = await openHarnesses(database, client, ledger.url, CONSUMERS, DOLLARS);
    for (const harness of harnesses) {
      for (let n = 0; n < 6; n += 1) await harness.addNode(random, LIMIT_MOST);
    }
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it(`come to what a plain model says (${SPENDS} spends, SEED=${seed})`, async () => {
    for (let spent = 0; spent < SPENDS || (missing().length > 0 && spent < SPENDS_MAX);) {
      const isAlone = random.between(0, 4) > 0;
      spent += isAlone ? 1 : TOGETHER;
      for (const harness of harnesses) await betweenWaves(harness);
      if (isAlone) await alone(random.pick(harnesses));
      else await together();
      for (const harness of harnesses) {
        await harness.assertSame();
        harness.model.forget();
      }
    }
    assert.deepEqual(missing(), [], 'outcomes that never came');
    await rebuildRollups(database);
    assert.deepEqual(await examineLedger(database), []);
  });

  async function betweenWaves(harness: BudgetHarness): Promise<void> {
    const { model } = harness;
    const dice = random.between(0, 99);
    if (dice < 4 && model.nodes.length < NODES_MAX) await harness.addNode(random, LIMIT_MOST);
    else if (dice < 6) await harness.turnWindows();
    else if (dice < 10) await harness.setWindow(random, random.pick(model.nodes), LIMIT_MOST);
    model.wave += 1;
  }

  /** Decided as the model decides it, to the words of the refusal. */
  async function alone(harness: BudgetHarness): Promise<void> {
    const { model } = harness;
    const key = random.pick(model.keys);
    const amount = random.between(1, AMOUNT_MOST);
    const hold = oneOf(model.holds.filter(({ isOpen }) => isOpen));
    const dice = random.between(0, 9);
    if (dice < 4) {
      const expected = model.judge(key, amount);
      const draft = harness.draft(key, amount);
      const [outcome] = await postDrafts(database, [draft]);
      assertSame(outcome, expected);
      if (expected.kind === 'fits') model.charge(draft.id, key, amount);
    } else if (dice < 7 || !hold) {
      const expected = model.judge(key, amount);
      const entry = { ...harness.draft(key, amount), kind: 'place', seconds: 600 } as const;
      const [outcome] = await postEntries(database, [entry]);
      assertSame(outcome, expected);
      if (outcome?.kind === 'done') model.place(outcome.hold.id, key, amount);
    } else {
      const asked = anyCapture();
      const expected = model.judgeCapture(hold, asked);
      const entry = captureOf(hold, asked);
      const [outcome] = await postEntries(database, [entry]);
      assertSame(outcome, expected);
      if (outcome?.kind === 'done') model.capture(outcome.chargeId, hold, asked);
    }
  }

  /** All at once; then the model hears what was made. Each hold and each charge is in one step at most. */
  async function together(): Promise<void> {
    const steps: Step[] = [];
    const overdue: ModelHold[] = [];
    for (const harness of harnesses) {
      const { model } = harness;
      const charges = shuffled(model.charges.filter(isRefundable));
      const holds = shuffled(model.holds.filter(({ isOpen }) => isOpen));
      for (let spends = 0, n = 0; spends < TOGETHER / CONSUMERS; n += 1) {
        const charge = charges[n];
        const hold = holds[n];
        const dice = random.between(0, 9);
        const together = dice < 6 ? 1 : random.pick(FLUSHES);
        spends += together;
        if (dice < 2 && charge) steps.push(refundStep(harness, charge));
        else if (dice < 4 && hold) steps.push(captureStep(harness, hold));
        else if (dice < 5 && hold) steps.push(releaseStep(harness, hold));
        else if (dice < 6) steps.push(placeStep(harness));
        else steps.push(chargeStep(harness, together));
      }
      const node = random.pick(model.nodes);
      steps.push(async () => {
        await harness.setLimit(random, node, LIMIT_MOST);
        return () => {};
      });
      if (random.between(0, 9) === 0 && model.nodes.filter((each) => !each.isClosed).length > 4) {
        steps.push(async () => {
          await harness.close(random.pick(model.nodes));
          return () => {};
        });
      }
      overdue.push(...holds.slice(0, 4));
    }
    await expireNow(overdue);
    const sweeps = [1, 2].map(async () => {
      while ((await expireHolds(database)).holds > 0);
    });
    const done = await Promise.all(shuffled(steps).map((step) => step()));
    await Promise.all(sweeps);
    await expireHolds(database);
    for (const tell of done) tell();
    for (const hold of overdue.filter(({ isOpen }) => isOpen)) {
      modelOf(hold).release(hold);
      count1('expired');
    }
  }

  function chargeStep(harness: BudgetHarness, length: number): Step {
    // Plain ones among them, as a flush has them.
    const asked = Array.from({ length }, () => ({
      key: random.pick(harness.model.keys),
      amount: random.between(1, AMOUNT_MOST),
    }));
    return async () => {
      const drafts = asked.map(({ key, amount }) => harness.draft(key, amount));
      const outcomes = await postDrafts(database, drafts);
      return () => {
        for (const [n, { key, amount }] of asked.entries()) {
          const outcome = note(outcomes[n]);
          if (outcome.kind === 'posted') harness.model.charge(drafts[n]?.id ?? '', key, amount);
        }
      };
    };
  }

  function placeStep(harness: BudgetHarness): Step {
    const key = random.pick(harness.model.keys);
    const amount = random.between(1, AMOUNT_MOST);
    return async () => {
      const entry = { ...harness.draft(key, amount), kind: 'place', seconds: 600 } as const;
      const [outcome] = await postEntries(database, [entry]);
      return () => {
        note(outcome);
        if (outcome?.kind === 'done') harness.model.place(outcome.hold.id, key, amount);
      };
    };
  }

  function captureStep({ model }: BudgetHarness, hold: ModelHold): Step {
    const asked = anyCapture();
    return async () => {
      const [outcome] = await postEntries(database, [captureOf(hold, asked)]);
      return () => {
        note(outcome);
        if (outcome?.kind === 'done') model.capture(outcome.chargeId, hold, asked);
      };
    };
  }

  function releaseStep({ model }: BudgetHarness, hold: ModelHold): Step {
    return async () => {
      const [outcome] = await postEntries(database, [releasing(hold.id)]);
      return () => {
        note(outcome);
        if (outcome?.kind === 'done') model.release(hold);
      };
    };
  }

  function refundStep({ model }: BudgetHarness, charge: ModelCharge): Step {
    const left = charge.amount - charge.refunded;
    const amount = random.between(0, 1) === 0 ? left : random.between(1, left);
    return async () => {
      const request = { developerNumber: 1, chargeId: charge.id, askedMicros: asMicros(amount) };
      const { kind } = await refundCharge(database, { ...request, idempotencyKey: undefined });
      assert.equal(kind, 'refunded');
      return () => model.refund(charge, amount);
    };
  }

  function anyCapture(): Capture {
    return {
      amount: random.between(0, 2) === 0 ? null : random.between(1, AMOUNT_MOST),
      isFinal: random.between(0, 1) === 0,
      over: random.pick(OVER_MODES),
    };
  }

  function modelOf(hold: ModelHold) {
    const found = harnesses.find(({ model }) => model.holds.includes(hold));
    return found?.model ?? assert.fail();
  }

  async function expireNow(holds: readonly ModelHold[]): Promise<void> {
    await client.query(
      `with overdue as (
         update farebox.holds set expires_at = now() - interval '1 ms' where id = any ($1)
         returning ledger, id, developer
       )
       insert into farebox.hold_expiries (ledger, due_at, developers, holds)
       select ledger, now(), array_agg(developer), array_agg(id) from overdue group by ledger`,
      [holds.map(({ id }) => id)],
    );
  }

  function note<T extends Result>(outcome: T | undefined): T {
    assert.ok(outcome);
    count1(outcome.kind);
    return outcome;
  }

  function count1(kind: string): void {
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
  }

  function assertSame(outcome: ChargeOutcome | HoldOutcome | undefined, expected: Verdict): void {
    note(outcome);
    assert.deepEqual(verdictOf(outcome), expected);
  }

  function oneOf<T>(values: readonly T[]): T | undefined {
    return values.length > 0 ? random.pick(values) : undefined;
  }

  function shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => ({ value, at: random.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ value }) => value);
  }
});

const EXPECTED = [
  'posted',
  'done',
  'limit_reached',
  'key_closed',
  'exceeds_hold',
  'hold_closed',
  'expired',
];

function isRefundable({ amount, refunded }: ModelCharge): boolean {
  return refunded < amount;
}

function captureOf({ id }: ModelHold, { amount, isFinal, over }: Capture) {
  const amountMicros = amount === null ? null : asMicros(amount);
  return capturing(id, { amountMicros, isFinal, over });
}

function verdictOf(outcome: ChargeOutcome | HoldOutcome | undefined): Verdict {
  switch (outcome?.kind) {
    case 'posted':
    case 'done':
      return { kind: 'fits' };
    case 'limit_reached': {
      const { budgetId: node, scope, limitMicros: limit, remainingMicros: remaining } = outcome;
      return { kind: 'limit_reached', node, scope, limit, remaining };
    }
    case 'exceeds_hold':
      return { kind: 'exceeds_hold', remaining: outcome.remainingMicros };
    case 'insufficient':
    case 'key_closed':
    case 'hold_closed':
      return { kind: outcome.kind };
    case 'replayed':
    case 'key_reused':
    case 'unknown_hold':
    case 'approval_required':
    case undefined:
      return assert.fail(`unexpected: ${outcome?.kind}`);
  }
}
