/**
 * Paths of top-ups through trouble: runs that follow another one over the same row, steps that were stuck, runs that
 * went on as new ones, and runs that are under way.
 */
import type { WorkflowHandle } from '@temporalio/client';
import { Client } from 'pg';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { reportPayment, reportReversal } from '../../src/temporal/start-top-up.ts';
import type { TopUpProgress } from '../../workflows/messages.ts';
import { until } from '../support/stack.ts';
import { HISTORY_EVENTS_MAX } from '../support/short-histories.ts';
import type { TopUpDesk } from '../support/top-up-desk.ts';

type Started = Pick<TopUp, 'id'>;

/** Each ends in another run than the first one, or after a step was stuck. */
export const OUTAGE_PATHS: Readonly<Record<string, (desk: TopUpDesk) => Promise<Started>>> = {
  async 'checkout-reported-after-it-expired'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.workflow(topUp.id).executeUpdate('cancel');
    await desk.workflow(topUp.id).result();
    await reportPayment(desk.temporal, topUp);
    return topUp;
  },

  async 'direct-reported-after-it-failed'(desk) {
    const consumer = await desk.newConsumer();
    await desk.request(consumer, 'direct', 1);
    await desk.saveCard(consumer, 'pm_card_chargeCustomerFail');
    const result = await desk.request(consumer, 'direct', 12.5);
    if (result.kind !== 'failed') throw new Error(result.kind);
    await desk.workflow(result.topUp.id).result();
    await reportPayment(desk.temporal, result.topUp);
    return result.topUp;
  },

  async 'checkout-begun-again'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.workflow(topUp.id).terminate();
    await reportPayment(desk.temporal, topUp);
    await desk.pay(topUp.sessionUrl);
    return topUp;
  },

  async 'checkout-open-stuck'(desk) {
    const consumer = await desk.newConsumer();
    return failing(desk, 'before update of opened_at on farebox.top_ups', async () => {
      const result = await desk.request(consumer, 'checkout', 25);
      if (result.kind !== 'pending') throw new Error(result.kind);
      return result.topUp;
    });
  },

  async 'checkout-credit-stuck'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    return failing(desk, 'before insert on farebox.movements', async () => {
      await desk.pay(topUp.sessionUrl);
      return topUp;
    });
  },

  async 'checkout-expire-stuck'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    return failing(desk, 'before update of status on farebox.top_ups', async () => {
      await desk.control(`sessions/${topUp.sessionId}/expire-now`);
      return topUp;
    });
  },
};

/** Has a statement fail until the step that it is part of is stuck, then lets an operator try it again. */
async function failing<T extends Started>(
  desk: TopUpDesk,
  when: string,
  act: () => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString: desk.config.databaseUrl });
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
  const workflow = desk.workflow(topUp.id);
  await until(async () => (await workflow.query<TopUpProgress>('status')).stuck !== null, {
    timeoutMs: 60_000,
  });
  await client.query('drop function farebox.fail() cascade');
  await client.end();
  await workflow.executeUpdate('retry');
  if ((await desk.topUp(topUp.id)).status === 'pending') {
    const url = await until(async () => (await desk.topUp(topUp.id)).sessionUrl);
    await desk.pay(url);
  }
  return topUp;
}

/** Saved as they stand: nothing has ended. */
export const RUNS_UNDER_WAY: Readonly<Record<string, (desk: TopUpDesk) => Promise<Started>>> = {
  async 'checkout-waiting'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await until(async () => {
      const { waitingFor } = await desk.workflow(topUp.id).query<TopUpProgress>('status');
      return waitingFor === 'payment';
    });
    return topUp;
  },

  async 'direct-stuck'(desk) {
    const fault = { method: 'POST', path: '/v1/payment_intents', kind: 'error', status: 503 };
    await desk.control('faults', { ...fault, times: 5 });
    const result = await desk.request(await desk.newConsumer(), 'direct', 12.5);
    if (result.kind !== 'pending') throw new Error(result.kind);
    const workflow = desk.workflow(result.topUp.id);
    await until(async () => (await workflow.query<TopUpProgress>('status')).stuck !== null, {
      timeoutMs: 60_000,
    });
    return result.topUp;
  },
};

/** Of a server that has histories end early: the runs before and after, the second told of a refund. */
export async function continuedRuns(
  desk: TopUpDesk,
): Promise<{ readonly before: WorkflowHandle; readonly after: WorkflowHandle }> {
  const topUp = await desk.checkout(await desk.newConsumer(), 25);
  const { workflow } = desk.temporal.client;
  const handle = desk.workflow(topUp.id);
  const first = (await handle.describe()).runId;
  await reportReversal(desk.temporal, topUp);
  while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
    await handle.executeUpdate('retry');
  }
  await reportPayment(desk.temporal, topUp);
  const second = await until(async () => {
    const { runId } = await handle.describe();
    return runId !== first && runId;
  });
  await desk.pay(topUp.sessionUrl);
  await desk.statusBecomes(topUp, 'completed');
  return {
    before: workflow.getHandle(handle.workflowId, first),
    after: workflow.getHandle(handle.workflowId, second),
  };
}
