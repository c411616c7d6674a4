/**
 * Paths of top-ups through failures: runs that follow another one over the same row, steps that were stuck, runs that
 * continued as new ones, and runs in progress.
 */
import type { WorkflowHandle } from '@temporalio/client';
import { Client } from 'pg';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { reportPayment } from '../../src/temporal/start-top-up.ts';
import type { TopUpProgress } from '../../workflows/messages.ts';
import { until } from '../support/stack.ts';
import { HISTORY_EVENTS_MAX } from '../support/short-histories.ts';
import type { TopUpHarness } from '../support/top-up-harness.ts';

type Started = Pick<TopUp, 'id'>;

/** Each ends in a later run than the first, or after a step was stuck. */
export const OUTAGE_PATHS: Readonly<Record<string, (harness: TopUpHarness) => Promise<Started>>> = {
  async 'checkout-reported-after-it-expired'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await harness.workflow(topUp.id).result();
    await reportPayment(harness.temporal, topUp);
    return topUp;
  },

  /** The update is answered before the timer that limits its wait. */
  async 'checkout-cancel-timed'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.workflow(topUp.id).executeUpdate('cancel');
    return topUp;
  },

  async 'direct-reported-after-it-failed'(harness) {
    const consumer = await harness.newConsumer();
    await harness.request(consumer, 'direct', 1);
    await harness.saveCard(consumer, 'pm_card_chargeCustomerFail');
    const result = await harness.request(consumer, 'direct', 12.5);
    if (result.kind !== 'failed') throw new Error(result.kind);
    await harness.workflow(result.topUp.id).result();
    await reportPayment(harness.temporal, result.topUp);
    return result.topUp;
  },

  async 'checkout-begun-again'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.workflow(topUp.id).terminate();
    await reportPayment(harness.temporal, topUp);
    await harness.pay(topUp.sessionUrl);
    return topUp;
  },

  async 'direct-stuck-then-retried'(harness) {
    const topUp = await stuckDirectTopUp(harness);
    await harness.workflow(topUp.id).executeUpdate('retry');
    return topUp;
  },

  async 'checkout-session-stuck'(harness) {
    await harness.control('faults', { ...FAILING, method: 'POST', path: '/v1/checkout/sessions' });
    const result = await harness.request(await harness.newConsumer(), 'checkout', 25);
    if (result.kind !== 'pending') throw new Error(result.kind);
    const { topUp } = result;
    await retryStuck(harness, topUp);
    const url = await until(async () => (await harness.topUp(topUp.id)).sessionUrl);
    await harness.pay(url);
    return topUp;
  },

  async 'checkout-ask-stuck'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.control('faults', { ...FAILING, method: 'GET', path: '/v1/checkout/sessions' });
    await harness.pay(topUp.sessionUrl);
    await retryStuck(harness, topUp);
    return topUp;
  },

  async 'checkout-cancel-stuck'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.control('faults', { ...FAILING, method: 'POST', path: '/v1/checkout/sessions' });
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await retryStuck(harness, topUp);
    return topUp;
  },

  async 'direct-fail-stuck'(harness) {
    const consumer = await harness.newConsumer();
    await harness.request(consumer, 'direct', 1);
    await harness.saveCard(consumer, 'pm_card_chargeCustomerFail');
    return failing(harness, 'before update of status on farebox.top_ups', async () => {
      const result = await harness.request(consumer, 'direct', 12.5);
      if (result.kind !== 'pending') throw new Error(result.kind);
      return result.topUp;
    });
  },

  async 'checkout-open-stuck'(harness) {
    const consumer = await harness.newConsumer();
    return failing(harness, 'before update of opened_at on farebox.top_ups', async () => {
      const result = await harness.request(consumer, 'checkout', 25);
      if (result.kind !== 'pending') throw new Error(result.kind);
      return result.topUp;
    });
  },

  async 'checkout-credit-stuck'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    return failing(harness, 'before insert on farebox.movements', async () => {
      await harness.pay(topUp.sessionUrl);
      return topUp;
    });
  },

  async 'checkout-expire-stuck'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    return failing(harness, 'before update of status on farebox.top_ups', async () => {
      await harness.control(`sessions/${topUp.sessionId}/expire-now`);
      return topUp;
    });
  },
};

/** As often as a step is tried before it is stuck. */
const FAILING = { kind: 'error', status: 503, times: 5 };

async function retryStuck(harness: TopUpHarness, { id }: Started): Promise<void> {
  await becomesStuck(harness.workflow(id));
  await harness.workflow(id).executeUpdate('retry');
}

async function becomesStuck(workflow: WorkflowHandle): Promise<void> {
  await until(async () => (await workflow.query<TopUpProgress>('status')).stuck !== null);
}

/** Makes a statement fail until its step is stuck, then lets an operator retry it. */
async function failing<T extends Started>(
  harness: TopUpHarness,
  when: string,
  act: () => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString: harness.config.databaseUrl });
  await client.connect();
  await client.query(`
    create function farebox.fail() returns trigger language plpgsql as $$
    begin raise exception 'as if the database were ill'; end $$
  `);
  const [event, table] = when.split(' on ');
  await client.query(
    `create trigger fail ${event} on ${table} for each row execute function farebox.fail()`,
  );
  const topUp = await act();
  const workflow = harness.workflow(topUp.id);
  await becomesStuck(workflow);
  await client.query('drop function farebox.fail() cascade');
  await client.end();
  await workflow.executeUpdate('retry');
  if ((await harness.topUp(topUp.id)).status === 'pending') {
    const url = await until(async () => (await harness.topUp(topUp.id)).sessionUrl);
    await harness.pay(url);
  }
  return topUp;
}

/** Saved in progress: nothing has ended. */
export const RUNS_UNDER_WAY: Readonly<Record<string, (harness: TopUpHarness) => Promise<Started>>> =
  {
    async 'checkout-waiting'(harness) {
      const topUp = await harness.checkout(await harness.newConsumer(), 25);
      await until(async () => {
        const { waitingFor } = await harness.workflow(topUp.id).query<TopUpProgress>('status');
        return waitingFor === 'payment';
      });
      return topUp;
    },

    'direct-stuck': stuckDirectTopUp,
  };

async function stuckDirectTopUp(harness: TopUpHarness): Promise<Started> {
  await harness.control('faults', { ...FAILING, method: 'POST', path: '/v1/payment_intents' });
  const result = await harness.request(await harness.newConsumer(), 'direct', 12.5);
  if (result.kind !== 'pending') throw new Error(result.kind);
  await becomesStuck(harness.workflow(result.topUp.id));
  return result.topUp;
}

/** On a server that ends histories early: the runs before and after. */
export async function continuedRuns(
  harness: TopUpHarness,
): Promise<{ readonly before: WorkflowHandle; readonly after: WorkflowHandle }> {
  const topUp = await harness.checkout(await harness.newConsumer(), 25);
  const { workflow } = harness.temporal.client;
  const handle = harness.workflow(topUp.id);
  const first = (await handle.describe()).runId;
  while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
    await handle.executeUpdate('retry');
  }
  await reportPayment(harness.temporal, topUp);
  const second = await until(async () => {
    const { runId } = await handle.describe();
    return runId !== first && runId;
  });
  await harness.pay(topUp.sessionUrl);
  await harness.statusBecomes(topUp, 'completed');
  return {
    before: workflow.getHandle(handle.workflowId, first),
    after: workflow.getHandle(handle.workflowId, second),
  };
}
