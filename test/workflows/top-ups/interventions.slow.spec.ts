/**
 * An operator terminates, cancels, resets or signals the workflow of a top-up, or of its refunds, in each of
 * its states. Afterwards the row says what happened, no workflow waits forever, and no money is taken twice.
 */
import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { sql } from '../../../src/store/database.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { findAutoTopUpState } from '../../../src/store/top-ups/auto-top-ups.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { authenticate } from '../../../src/stripe/authentication.ts';
import { proveBooks } from '../../support/books.ts';
import { intervene, INTERVENTIONS } from '../../support/interventions.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

/**
 * In the order in which they are made: the later ones need a processor that refuses. `at the bank`: it wants
 * a confirmation.
 */
const STATES = [
  'open checkout',
  'at the bank',
  'automatic at the bank',
  'completed',
  'canceled',
  'refunded',
  'stuck refund',
  'stuck',
] as const;
type State = (typeof STATES)[number];

/** The status of the top-up in the end, unless the intervention leads to another one. */
const ENDS: Readonly<Record<State, string> & { readonly [trial: string]: string }> = {
  'open checkout': 'completed',
  'at the bank': 'completed',
  'automatic at the bank': 'completed',
  completed: 'completed',
  canceled: 'expired',
  refunded: 'refunded',
  'stuck refund': 'refunded',
  stuck: 'completed',
  'open checkout: cancel': 'expired',
  'at the bank: cancel': 'expired',
  'automatic at the bank: cancel': 'expired',
  'stuck: cancel': 'expired',
  // Reconciliation finds it after its time.
  'stuck: terminate': 'failed',
};

const TRIALS = STATES.flatMap((state) =>
  INTERVENTIONS.map((intervention) => {
    const name = `${state}: ${intervention}`;
    return { name, state, intervention, end: ENDS[name] ?? ENDS[state] };
  }),
);

/** Undefined while there is no such workflow. */
const resultOf = (handle: WorkflowHandle) => handle.result().catch(() => undefined);

type Trial = (typeof TRIALS)[number];
const eachTrial = (act: (trial: Trial) => Promise<void>) => Promise.all(TRIALS.map(act));

function isAtBank(state: State): boolean {
  return state === 'at the bank' || state === 'automatic at the bank';
}

async function isStuck(handle: WorkflowHandle): Promise<boolean> {
  const progress = await handle.query<{ stuck: unknown }>('status').catch(() => undefined);
  return progress !== undefined && progress.stuck !== null;
}

describe('the workflow of a top-up in each state, after each intervention', () => {
  let harness: TopUpHarness;
  const topUps = new Map<string, TopUp>();

  before(async () => {
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      RECONCILE_REVIEW_MS: '300,1000,3000,15000',
      ...QUICK_RETRIES,
    });
    await harness.startWorker();
    for (const state of STATES) {
      if (state === 'stuck refund') await refuse('/v1/refunds');
      if (state === 'stuck') await refuse('/v1/payment_intents');
      await eachTrial(async (trial) => {
        if (trial.state === state) await begin(trial);
      });
    }
    await harness.statusBecomes(topUpOf('stuck: cancel'), 'expired');
    await harness.forgetFaults();
    await eachTrial(async ({ name, state, intervention }) => {
      const topUp = topUpOf(name);
      if (state === 'open checkout') await harness.pay(topUp.sessionUrl);
      if (isAtBank(state) && intervention !== 'cancel') await confirm(topUp);
    });
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '1 hour'
      where id = ${topUpOf('stuck: terminate').id}
    `);
    // As the schedule does.
    await harness.reconcile();
  });
  after(() => harness.close());

  async function begin({ name, state, intervention }: Trial): Promise<void> {
    topUps.set(name, await make(state, await harness.newConsumer()));
    const handle = workflowOf(name, state);
    const signal = handle.workflowId.startsWith('top-up') ? 'paymentReported' : 'reversalReported';
    await intervene(harness.temporal, handle, intervention, signal);
  }

  const topUpOf = (name: string): TopUp => {
    const topUp = topUps.get(name);
    assert.ok(topUp, name);
    return topUp;
  };
  const workflowOf = (name: string, state: State): WorkflowHandle => {
    const { id } = topUpOf(name);
    const isOfRefund = state === 'refunded' || state === 'stuck refund';
    return isOfRefund ? harness.reversals(id) : harness.workflow(id);
  };
  const refuse = (path: string) =>
    harness.control('faults', { method: 'POST', path, kind: 'error', status: 503, times: 10_000 });

  async function make(state: State, consumer: Consumer): Promise<TopUp> {
    if (state === 'open checkout') return harness.checkout(consumer, 5);
    if (state === 'canceled') {
      const topUp = await harness.checkout(consumer, 5);
      await harness.workflow(topUp.id).executeUpdate('cancel');
      return topUp;
    }
    if (state === 'stuck') {
      const result = await harness.request(consumer, 'direct', 5);
      assert.ok(result.kind === 'pending', result.kind);
      await until(() => isStuck(harness.workflow(result.topUp.id)));
      return result.topUp;
    }
    if (isAtBank(state)) return askConfirmation(consumer, state === 'automatic at the bank');
    const { kind, ...made } = await harness.requestDirect(consumer, 5);
    assert.ok(kind === 'completed' && 'topUp' in made, kind);
    if (state === 'completed') return made.topUp;
    await requestRefund(harness.database, made.topUp.id, undefined);
    if (state === 'refunded') await until(() => resultOf(harness.reversals(made.topUp.id)));
    else await until(() => isStuck(harness.reversals(made.topUp.id)));
    return made.topUp;
  }

  async function askConfirmation(consumer: Consumer, automatically: boolean): Promise<TopUp> {
    assert.equal((await harness.requestDirect(consumer, 1)).kind, 'completed');
    await harness.saveCard(consumer, 'pm_card_authenticationRequired');
    if (automatically) {
      await harness.topUpAutomatically(consumer, 12);
      await harness.charge(consumer);
    } else await harness.request(consumer, 'direct', 5);
    return until(async () => {
      const [topUp] = await harness.topUpsOf(consumer);
      return topUp?.authenticationAskedAt != null && topUp;
    });
  }

  /** What the cardholder does on the bank's page. */
  async function confirm({ paymentIntentId }: TopUp): Promise<void> {
    const next = await authenticate(harness.stripe, paymentIntentId ?? '', 'https://example.com/');
    assert.ok(next.kind === 'redirect', next.kind);
    const body = new URLSearchParams({ result: 'succeeded' });
    assert.equal((await fetch(next.url, { method: 'POST', body })).status, 200);
  }

  it('automatic top-ups continue after one that was canceled at the bank', async () => {
    const { ledger, consumerId } = topUpOf('automatic at the bank: cancel');
    const state = await findAutoTopUpState(harness.database, { ledger, consumerId });
    assert.deepEqual(state, { status: 'on', reason: null });
  });

  for (const { name, end } of TRIALS) {
    it(`${name}: ends as ${end}`, async () => {
      const topUp = topUpOf(name);
      await until(async () => (await harness.topUp(topUp.id)).status === end);
      await until(() => harness.hasEnded(topUp));
      const isPaid = end === 'completed' || end === 'refunded';
      assert.equal((await harness.paymentsOf(topUp)).length, isPaid ? 1 : 0);
    });
  }

  it('the books agree with the processor', () => proveBooks(harness.env));
});
