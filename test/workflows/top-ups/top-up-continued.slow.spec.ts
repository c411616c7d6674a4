/** A top-up outlives any length of history: a run continues as a new one, and loses nothing. */
import assert from 'node:assert/strict';
import { reportPayment, reportReversal } from '../../../src/temporal/start-top-up.ts';
import { until } from '../../support/stack.ts';
import {
  HISTORY_EVENTS_MAX,
  startTemporalWithShortHistories,
  type ShortHistories,
} from '../../support/short-histories.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

describe('a top-up with a long history', () => {
  let temporal: ShortHistories;
  let harness: TopUpHarness;

  before(async () => {
    temporal = await startTemporalWithShortHistories();
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', ...temporal.env });
    await harness.startWorker();
  });

  after(async () => {
    await harness?.close();
    await temporal?.stop();
  });

  it('is credited when the payment is reported just as its run continues as a new one', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    const handle = harness.workflow(topUp.id);
    const first = (await handle.describe()).runId;
    while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await handle.result()).status, 'completed');
    assert.notEqual((await handle.describe()).runId, first);
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('processes a refund that was reported before its run continued as a new one', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    const handle = harness.workflow(topUp.id);
    const first = (await handle.describe()).runId;
    await reportReversal(harness.temporal, topUp);
    while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await reportPayment(harness.temporal, topUp);
    await until(async () => (await handle.describe()).runId !== first);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    await handle.result();
    const history = JSON.stringify(await handle.fetchHistory());
    assert.ok(history.includes('"activityType":{"name":"settleTopUp"}'));
  });
});
