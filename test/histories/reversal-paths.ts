/** Each path that a top-up can take when it is refunded or disputed, for record.ts: the run that settles it. */
import type { Micros } from '../../src/domain/money.ts';
import { requestRefund } from '../../src/store/top-ups/request-refund.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { until } from '../support/stack.ts';
import type { TopUpDesk } from '../support/top-up-desk.ts';

/** Each returns the top-up when its last run is under way, or over. */
export const REVERSAL_PATHS: Readonly<Record<string, (desk: TopUpDesk) => Promise<TopUp>>> = {
  async 'reversal-refund-asked'(desk) {
    const topUp = await paid(desk);
    await requestRefund(desk.database, topUp.id, 4_000_000 as Micros);
    await until(async () => (await refundsOf(desk, topUp)) === 1);
    return topUp;
  },

  async 'reversal-disputed'(desk) {
    const topUp = await paid(desk);
    await desk.control('disputes', { payment_intent: topUp.paymentIntentId });
    await desk.statusBecomes(topUp, 'disputed');
    return topUp;
  },

  async 'reversal-before-the-credit'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 10);
    await desk.control('webhooks', { mode: 'drop' });
    await desk.pay(topUp.sessionUrl);
    const { data } = await desk.stripe.paymentIntents.list({ limit: 1 });
    await desk.stripe.refunds.create({ payment_intent: data[0]?.id ?? '', amount: 400 });
    await desk.workflow(topUp.id).executeUpdate('retry');
    await desk.statusBecomes(topUp, 'partially_refunded');
    await desk.control('webhooks', { mode: 'deliver' });
    return topUp;
  },

  async 'reversal-stuck-then-retried'(desk) {
    const topUp = await paid(desk);
    const down = { method: 'GET', path: '/v1/disputes', kind: 'error', status: 503, times: 1_000 };
    await desk.control('faults', down);
    await desk.control('disputes', { payment_intent: topUp.paymentIntentId });
    const isStuck = async () => {
      const query = `WorkflowId = "${desk.workflow(topUp.id).workflowId}" and Stuck = true`;
      return (await desk.temporal.client.workflow.count(query)).count === 1;
    };
    await until(isStuck);
    await desk.forgetFaults();
    await desk.workflow(topUp.id).executeUpdate('retry');
    return topUp;
  },
};

async function paid(desk: TopUpDesk): Promise<TopUp> {
  const result = await desk.request(await desk.newConsumer(), 'direct', 10);
  if (result.kind !== 'completed') throw new Error(result.kind);
  return desk.topUp(result.topUp.id);
}

async function refundsOf(desk: TopUpDesk, { paymentIntentId }: TopUp): Promise<number> {
  const { data } = await desk.stripe.refunds.list({ payment_intent: paymentIntentId ?? '' });
  return data.length;
}
