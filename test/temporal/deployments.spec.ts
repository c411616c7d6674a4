/** Two deployments in one namespace whose rows have the same ids, as after a copy of the database or a new name. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { DEFAULT_TASK_QUEUE } from '../../src/domain/task-queues.ts';
import { approvalWorkflowId } from '../../src/temporal/start-approval.ts';
import { grantWorkflowId } from '../../src/temporal/start-grant.ts';
import { invocationWorkflowId } from '../../src/temporal/start-invocation.ts';
import { reportReversal, reversalsWorkflowId } from '../../src/temporal/start-reversals.ts';
import { startTopUp, topUpWorkflowId } from '../../src/temporal/start-top-up.ts';
import {
  reportWebhookEndpoint,
  webhookWorkflowId,
} from '../../src/temporal/start-webhook-endpoint.ts';
import type { TemporalClient } from '../../src/temporal/client.ts';
import { aloneInNamespace, until } from '../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';

const OTHER = { taskQueue: 'staging' };

describe('deployments that share a Temporal namespace', () => {
  let harness: TopUpHarness;
  let staging: TemporalClient;

  before(async () => {
    harness = await openTopUpHarness(await aloneInNamespace());
    staging = { ...harness.temporal, ...OTHER };
  });
  after(async () => {
    await harness?.close();
  });

  const run = async (workflowId: string) => {
    const { taskQueue, status } = await harness.temporal.client.workflow
      .getHandle(workflowId)
      .describe();
    return { taskQueue, status: status.name };
  };

  it('have workflows with different ids, and the default deployment has the shortest', () => {
    const id = randomUUID();
    const ids = (deployment: { taskQueue: string }) => [
      topUpWorkflowId(deployment, id),
      reversalsWorkflowId(deployment, id),
      grantWorkflowId(deployment, id),
      invocationWorkflowId(deployment, id),
      approvalWorkflowId(deployment, id),
      webhookWorkflowId(deployment, id),
    ];
    const plain = [
      `top-up/${wireId('topUp', id)}`,
      `reversals/${wireId('topUp', id)}`,
      `grant/${wireId('grant', id)}`,
      `invocation/${wireId('invocation', id)}`,
      `approval/${wireId('approval', id)}`,
      `webhooks/${wireId('webhookEndpoint', id)}`,
    ];
    assert.deepEqual(ids({ taskQueue: DEFAULT_TASK_QUEUE }), plain);
    assert.deepEqual(
      ids(OTHER),
      plain.map((each) => `staging/${each}`),
    );
  });

  it('each start and signal a run of their own', async () => {
    const id = randomUUID();
    const topUp = {
      id,
      consumerId: randomUUID(),
      method: 'checkout',
      automatic: false,
      status: 'pending',
      amountMicros: asMicros(5_000_000),
    } as const;
    for (const deployment of [harness.temporal, staging]) {
      await startTopUp(deployment, topUp);
      await reportReversal(deployment, topUp);
      await reportWebhookEndpoint(deployment, id);
    }
    for (const idIn of [topUpWorkflowId, reversalsWorkflowId, webhookWorkflowId]) {
      for (const deployment of [harness.temporal, staging]) {
        const workflowId = idIn(deployment, id);
        assert.deepEqual(
          await run(workflowId),
          { taskQueue: deployment.taskQueue, status: 'RUNNING' },
          workflowId,
        );
      }
    }
  });

  it('credit once when one is renamed with a checkout in flight', async () => {
    const consumer = await harness.newConsumer();
    const before = await harness.startWorker();
    const topUp = await harness.checkout(consumer, 5);
    await before.stop();

    await harness.startWorker({ TEMPORAL_TASK_QUEUE: OTHER.taskQueue });
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    const renamed = topUpWorkflowId(staging, topUp.id);
    await until(async () => (await run(renamed)).status === 'COMPLETED');
    const old = topUpWorkflowId(harness.temporal, topUp.id);
    assert.deepEqual(await run(old), { taskQueue: DEFAULT_TASK_QUEUE, status: 'RUNNING' });
    const { credited, movements } = await harness.books(consumer);
    assert.deepEqual({ credited, movements }, { credited: 5_000_000, movements: 1 });
  });
});
