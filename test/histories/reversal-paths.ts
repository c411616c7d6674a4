/** Each path of a refunded or disputed top-up, for record.ts: the run of `reversals`. */
import type { Micros } from '../../src/domain/money.ts';
import type { ReversalsProgress } from '../../workflows/messages.ts';
import { reportReversal } from '../../src/temporal/start-reversals.ts';
import { requestRefund } from '../../src/store/top-ups/request-refund.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { until } from '../support/stack.ts';
import type { TopUpHarness } from '../support/top-up-harness.ts';

/** Each returns the top-up when its last run is in progress or over. */
export const REVERSAL_PATHS: Readonly<Record<string, (harness: TopUpHarness) => Promise<TopUp>>> = {
  async 'reversals-refund-asked'(harness) {
    const topUp = await paid(harness);
    await requestRefund(harness.database, topUp.id, 4_000_000 as Micros);
    await until(async () => (await refundsOf(harness, topUp)) === 1);
    return topUp;
  },

  async 'reversals-disputed'(harness) {
    const topUp = await paid(harness);
    await harness.control('disputes', { payment_intent: topUp.paymentIntentId });
    await harness.statusBecomes(topUp, 'disputed');
    return topUp;
  },

  async 'reversals-before-the-credit'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 10);
    await harness.control('webhooks', { mode: 'drop' });
    await harness.pay(topUp.sessionUrl);
    const { data } = await harness.stripe.paymentIntents.list({ limit: 1 });
    await harness.stripe.refunds.create({ payment_intent: data[0]?.id ?? '', amount: 400 });
    await harness.workflow(topUp.id).executeUpdate('retry');
    await harness.statusBecomes(topUp, 'partially_refunded');
    await harness.control('webhooks', { mode: 'deliver' });
    return topUp;
  },

  async 'reversals-stuck-then-retried'(harness) {
    const topUp = await paid(harness);
    const down = { method: 'GET', path: '/v1/disputes', kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', down);
    await harness.control('disputes', { payment_intent: topUp.paymentIntentId });
    const isStuck = async () => {
      const query = `WorkflowId = "${harness.reversals(topUp.id).workflowId}" and Stuck = true`;
      return (await harness.temporal.client.workflow.count(query)).count === 1;
    };
    await until(isStuck);
    await harness.forgetFaults();
    await harness.reversals(topUp.id).executeUpdate('retry');
    return topUp;
  },

  async 'reversals-reported-during-the-read'(harness) {
    const topUp = await paid(harness);
    const slow = { method: 'GET', path: '/v1/refunds', kind: 'delay', ms: 2_000 };
    await harness.control('faults', slow);
    await reportReversal(harness.temporal, topUp);
    await until(async () => (await harness.faults()).length === 0);
    await harness.control('disputes', { payment_intent: topUp.paymentIntentId });
    await harness.statusBecomes(topUp, 'disputed');
    return topUp;
  },

  async 'reversals-reported-again'(harness) {
    const topUp = await paid(harness);
    await harness.control('disputes', { payment_intent: topUp.paymentIntentId });
    await harness.statusBecomes(topUp, 'disputed');
    await harness.reversals(topUp.id).result();
    const { data } = await harness.stripe.disputes.list({
      payment_intent: topUp.paymentIntentId ?? '',
    });
    await harness.control(`disputes/${data[0]?.id}/close`, { status: 'lost' });
    await harness.statusBecomes(topUp, 'charged_back');
    return topUp;
  },
};

/** Saved in progress. */
export const REVERSALS_UNDER_WAY: typeof REVERSAL_PATHS = {
  async 'reversals-stuck'(harness) {
    const topUp = await paid(harness);
    const down = { method: 'GET', path: '/v1/refunds', kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', down);
    await harness.control('disputes', { payment_intent: topUp.paymentIntentId });
    const handle = harness.reversals(topUp.id);
    await until(async () => {
      const isThere = await handle.describe().then(
        () => true,
        () => false,
      );
      return isThere && (await handle.query<ReversalsProgress>('status')).stuck !== null;
    });
    return topUp;
  },
};

async function paid(harness: TopUpHarness): Promise<TopUp> {
  const result = await harness.request(await harness.newConsumer(), 'direct', 10);
  if (result.kind !== 'completed') throw new Error(result.kind);
  return harness.topUp(result.topUp.id);
}

async function refundsOf(harness: TopUpHarness, { paymentIntentId }: TopUp): Promise<number> {
  const { data } = await harness.stripe.refunds.list({ payment_intent: paymentIntentId ?? '' });
  return data.length;
}
