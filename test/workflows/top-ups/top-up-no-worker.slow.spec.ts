/** No worker takes steps that call Stripe, while workflows run: an operator's update is answered all the same. */
import assert from 'node:assert/strict';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { openOwnWorkers, type OwnWorkers } from '../../support/own-workers.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

describe('without a worker for the calls of Stripe', () => {
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

  it('a cancel is answered after 100 s with what it waits for, and done when a worker runs', async () => {
    const both = await harness.startWorker();
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await both.stop();
    const onlyWorkflows = await workers.create();
    await onlyWorkflows.runUntil(async () => {
      const told = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
      assert.deepEqual([told.status, told.waitingFor, told.stuck], ['pending', 'worker', null]);
      const asked = await harness.workflow(topUp.id).query<TopUpProgress>('status');
      assert.equal(asked.waitingFor, 'worker');
    });
    await harness.startWorker();
    await harness.statusBecomes(topUp, 'expired');
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
    assert.equal(session.status, 'expired');
  });
});
