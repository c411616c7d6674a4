/**
 * Any sequence of credits, charges, refunds and disputes, against a model of a few lines: credits, less
 * charges and claims, are the balance, or else the debt; and spent money stays with its top-ups.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { Micros } from '../../../src/domain/money.ts';
import { CLAIMS, type ReversalStatus } from '../../../src/domain/reversal.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import type { Database } from '../../../src/store/database.ts';
import { failRefund, requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import type { ReportedReversal } from '../../../src/store/top-ups/reversals.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, processorId, type Payer } from '../../support/payer.ts';

const RUNS = 30;
const STEPS_MAX = 25;
const CENT = 10_000;

interface Reversal {
  readonly topUpId: string;
  readonly kind: 'refund' | 'dispute';
  readonly amountMicros: Micros;
  readonly refundId?: string;
  /** Undefined: the processor does not know it yet. */
  processorId?: string;
  status: ReversalStatus;
}

/** The complete model. */
interface Model {
  credited: number;
  spent: number;
  readonly topUps: string[];
  readonly reversals: Reversal[];
}

const anyStep = fc.record({
  what: fc.constantFrom(
    ...(['topUp', 'charge', 'charge', 'askRefund', 'refuse', 'make', 'failLater'] as const),
    ...(['refundOutside', 'dispute', 'win', 'lose', 'reopen'] as const),
  ),
  /** Picks one of those that exist by then. */
  at: fc.nat(),
  micros: fc.integer({ min: 1, max: 10_000_000 }),
});
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

describe('the money of a consumer', () => {
  let ledger: TestLedger;
  let database: Database;

  before(async () => {
    ledger = await openTestLedger(4);
    ({ database } = ledger);
  });
  after(async () => {
    await ledger.drop();
  });

  it('is credits less charges less claims, or owed, after any refunds and disputes', async () => {
    const anySteps = fc.array(anyStep, { minLength: 5, maxLength: STEPS_MAX });
    const property = fc.asyncProperty(anySteps, async (steps) => {
      const payer = await newPayer(database);
      const model: Model = { credited: 0, spent: 0, topUps: [], reversals: [] };
      for (const step of [{ what: 'topUp', at: 0, micros: 5_000_000 } as const, ...steps]) {
        const { spent } = model;
        const before = await spentLots(payer, spent);
        await take(payer, model, step);
        const net = netOf(model);
        const { balance, debt } = await payer.money();
        assert.deepEqual([balance, debt], [Math.max(net, 0), Math.max(-net, 0)], step.what);
        assert.deepEqual(await spentLots(payer, spent), before, 'what is spent has moved');
      }
      assert.deepEqual(await examineLedger(database), []);
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  async function take(payer: Payer, model: Model, { what, at, micros }: Step): Promise<void> {
    const cents = (Math.ceil(micros / CENT) * CENT) as Micros;
    if (what === 'topUp') {
      const amount = Math.max(cents, 50 * CENT);
      model.topUps.push(await payer.topUp(amount));
      model.credited += amount;
      return;
    }
    if (what === 'charge') {
      const fits = micros <= Math.max(netOf(model), 0);
      assert.equal(await payer.charge(micros), fits);
      if (fits) model.spent += micros;
      return;
    }
    const topUpId = model.topUps[at % model.topUps.length] ?? '';
    const mine = model.reversals.filter((each) => each.topUpId === topUpId);
    const pick = (kind: Reversal['kind'], ...statuses: readonly ReversalStatus[]) => {
      const found = mine.filter((each) => each.kind === kind && statuses.includes(each.status));
      return found[at % Math.max(found.length, 1)];
    };
    if (what === 'askRefund') {
      const asked = at % 2 === 0 ? undefined : cents;
      const result = await requestRefund(database, topUpId, asked);
      if (result.kind !== 'requested') return;
      const { refundId, amountMicros } = result;
      assert.ok(amountMicros <= netOf(model) && amountMicros % CENT === 0);
      model.reversals.push({
        topUpId,
        kind: 'refund',
        amountMicros,
        refundId,
        status: 'requested',
      });
      return;
    }
    if (what === 'refuse') {
      const refund = pick('refund', 'requested');
      if (!refund) return;
      await failRefund(database, topUpId, refund.refundId ?? '', 'refused');
      refund.status = 'failed';
      return;
    }
    change(model, topUpId, what, cents, pick);
    const known = model.reversals.filter((each) => each.topUpId === topUpId && each.processorId);
    const reported = known.map((each) => ({ ...each, grossMicros: each.amountMicros }));
    await payer.report(topUpId, ...(reported as ReportedReversal[]));
  }
});

function netOf({ credited, spent, reversals }: Model): number {
  const claims = reversals.filter(({ status }) => CLAIMS[status] !== 'nothing');
  return claims.reduce((net, { amountMicros }) => net - amountMicros, credited - spent);
}

/** At the processor. */
function change(
  model: Model,
  topUpId: string,
  what: Exclude<Step['what'], 'topUp' | 'charge' | 'askRefund' | 'refuse'>,
  amountMicros: Micros,
  pick: (kind: Reversal['kind'], ...statuses: readonly ReversalStatus[]) => Reversal | undefined,
): void {
  switch (what) {
    case 'make': {
      // Also one whose refusal came too soon.
      const refund = pick('refund', 'requested', 'failed');
      if (refund) refund.processorId ??= processorId('re');
      return become(refund, 'made');
    }
    case 'failLater':
      return become(pick('refund', 'made'), 'failed');
    case 'refundOutside': {
      const id = processorId('re');
      model.reversals.push({
        topUpId,
        kind: 'refund',
        amountMicros,
        processorId: id,
        status: 'made',
      });
      return;
    }
    case 'dispute': {
      const id = processorId('dp');
      model.reversals.push({
        topUpId,
        kind: 'dispute',
        amountMicros,
        processorId: id,
        status: 'open',
      });
      return;
    }
    case 'win':
      return become(pick('dispute', 'open', 'lost'), 'won');
    case 'lose':
      return become(pick('dispute', 'open', 'won'), 'lost');
    case 'reopen':
      return become(pick('dispute', 'lost', 'won'), 'open');
  }
}

function become(reversal: Reversal | undefined, status: ReversalStatus): void {
  if (reversal) reversal.status = status;
}

/** The top-ups that paid for everything spent up to a position: this must never change. */
async function spentLots(payer: Payer, spent: number) {
  const lots = (await payer.lots()).filter(({ from, to }) => from < spent && from < to);
  return lots.map(({ topUpId, from, to }) => ({ topUpId, from, to: Math.min(to, spent) }));
}
