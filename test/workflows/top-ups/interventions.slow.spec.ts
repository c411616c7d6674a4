/**
 * An operator terminates, cancels, resets or signals the workflow of a top-up, or of its refunds, in each of its states.
 * Afterwards the row says what happened, no workflow waits for ever, and no money is taken twice.
 */
import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { sql } from '../../../src/store/database.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { reconcileNow } from '../../../src/temporal/reconcile-now.ts';
import { proveBooks } from '../../support/books.ts';
import { intervene, INTERVENTIONS } from '../../support/interventions.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

/** In the order in which they are made: the later ones need a processor that refuses. */
const STATES = [
  'open checkout',
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
  completed: 'completed',
  canceled: 'expired',
  refunded: 'refunded',
  'stuck refund': 'refunded',
  stuck: 'completed',
  'open checkout: cancel': 'expired',
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

async function isStuck(handle: WorkflowHandle): Promise<boolean> {
  const progress = await handle.query<{ stuck: unknown }>('status').catch(() => undefined);
  return progress !== undefined && progress.stuck !== null;
}

describe('the workflow of a top-up in each state, after each intervention', function () {
  this.timeout(120_000);
  let harness: TopUpHarness;
  const topUps = new Map<string, TopUp>();

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', ...QUICK_RETRIES });
    await harness.startWorker();
    for (const state of STATES) {
      if (state === 'stuck refund') await refuse('/v1/refunds');
      if (state === 'stuck') await refuse('/v1/payment_intents');
      await Promise.all(
        TRIALS.filter((trial) => trial.state === state).map(async ({ name }) =>
          topUps.set(name, await make(state, await harness.newConsumer())),
        ),
      );
    }
    for (const { name, state, intervention } of TRIALS) {
      const handle = workflowOf(name, state);
      const signal = handle.workflowId.startsWith('top-up')
        ? 'paymentReported'
        : 'reversalReported';
      await intervene(harness.temporal, handle, intervention, signal);
    }
    await harness.statusBecomes(topUpOf('stuck: cancel'), 'expired');
    await harness.forgetFaults();
    for (const { name, state } of TRIALS) {
      if (state === 'open checkout') await harness.pay(topUpOf(name).sessionUrl);
    }
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '1 hour'
      where id = ${topUpOf('stuck: terminate').id}
    `);
    // As the schedule does.
    await reconcileNow(harness.temporal, AbortSignal.timeout(60_000));
  });
  after(() => harness.close());

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
    const { kind, ...made } = await harness.requestDirect(consumer, 5);
    assert.ok(kind === 'completed' && 'topUp' in made, kind);
    if (state === 'completed') return made.topUp;
    await requestRefund(harness.database, made.topUp.id, undefined);
    if (state === 'refunded') await harness.statusBecomes(made.topUp, 'refunded');
    else await until(() => isStuck(harness.reversals(made.topUp.id)));
    return made.topUp;
  }

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
