/** The workflow of reversals, started by hand before the credit, and told of a refund while it reads the row. */
import assert from 'node:assert/strict';
import { Worker } from '@temporalio/worker';
import { createReversalActivities } from '../../../activities/reversals.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { stripeTaskQueue } from '../../../src/domain/task-queues.ts';
import { creditTopUp } from '../../../src/store/top-ups/credit-top-up.ts';
import { ask } from '../../../src/stripe/ask-processor.ts';
import { reportReversal, reversalsWorkflowId } from '../../../src/temporal/start-reversals.ts';
import type { ReversalsView } from '../../../workflows/messages.ts';
import { openOwnWorkers, type OwnWorkers } from '../../support/own-workers.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

describe('reversals of a top-up that is not credited yet', () => {
  let harness: TopUpHarness;
  let workers: OwnWorkers;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    workers = await openOwnWorkers(harness);
  });
  after(async () => {
    await workers?.close();
    await harness?.close();
  });

  it('are read when they are reported between the read of the row and its end', async () => {
    const { database, stripe, temporal } = harness;
    const worker = await harness.startWorker();
    const { id, sessionUrl } = await harness.checkout(await harness.newConsumer(), 25);
    await worker.stop();
    await harness.control('webhooks', { mode: 'drop' });
    await harness.pay(sessionUrl);

    let reads = 0;
    const readTopUp = async (topUpId: string) => {
      const seen = await workers.steps.readTopUp(topUpId);
      if (++reads === 1) {
        await ask({ database, stripe }, await harness.topUp(id));
        await creditTopUp(database, id);
        const { paymentIntentId } = await harness.topUp(id);
        await stripe.refunds.create({ payment_intent: paymentIntentId ?? '', amount: 400 });
        await reportReversal(temporal, await harness.topUp(id));
      }
      return seen;
    };
    const { namespace, taskQueue } = harness.config.temporal;
    const byRow = await workers.create({ readTopUp });
    const byStripe = await Worker.create({
      connection: workers.connection,
      namespace,
      taskQueue: stripeTaskQueue(taskQueue),
      activities: createReversalActivities({
        database,
        stripe,
        warn: (message) => assert.fail(message),
      }),
    });
    const handle = await temporal.client.workflow.start('reversals', {
      workflowId: reversalsWorkflowId(temporal, id),
      taskQueue,
      args: [{ topUpId: wireId('topUp', id) }],
    });
    await byRow.runUntil(
      byStripe.runUntil(async () => {
        const view = (await handle.result()) as ReversalsView;
        assert.equal(view.status, 'partially_refunded');
      }),
    );
    assert.equal((await harness.topUp(id)).status, 'partially_refunded');
  });
});
