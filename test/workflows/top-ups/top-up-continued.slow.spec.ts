/** A top-up outlives any length of history: a run goes on as a new one, and loses nothing. */
import assert from 'node:assert/strict';
import { reportPayment, reportReversal } from '../../../src/temporal/start-top-up.ts';
import { until } from '../../support/stack.ts';
import {
  HISTORY_EVENTS_MAX,
  startTemporalWithShortHistories,
  type ShortHistories,
} from '../../support/short-histories.ts';
import { openDesk, type TopUpDesk } from '../../support/top-up-desk.ts';

describe('a top-up with a long history', () => {
  let temporal: ShortHistories;
  let desk: TopUpDesk;

  before(async () => {
    temporal = await startTemporalWithShortHistories();
    desk = await openDesk({ FIRST_ASK_MS: '3600000', ...temporal.env });
    await desk.startWorker();
  });

  after(async () => {
    await desk?.close();
    await temporal?.stop();
  });

  it('is credited when the payment is reported just as its run goes on as a new one', async () => {
    const consumer = await desk.newConsumer();
    const topUp = await desk.checkout(consumer, 25);
    const handle = desk.workflow(topUp.id);
    const first = (await handle.describe()).runId;
    while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await desk.pay(topUp.sessionUrl);
    await desk.statusBecomes(topUp, 'completed');
    assert.equal((await handle.result()).status, 'completed');
    assert.notEqual((await handle.describe()).runId, first);
    assert.equal((await desk.books(consumer)).credited, 25_000_000);
  });

  it('settles what was reported of a refund before its run went on as a new one', async () => {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    const handle = desk.workflow(topUp.id);
    const first = (await handle.describe()).runId;
    await reportReversal(desk.temporal, topUp);
    while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await reportPayment(desk.temporal, topUp);
    await until(async () => (await handle.describe()).runId !== first);
    await desk.pay(topUp.sessionUrl);
    await desk.statusBecomes(topUp, 'completed');
    await handle.result();
    const history = JSON.stringify(await handle.fetchHistory());
    assert.ok(history.includes('"activityType":{"name":"settleTopUp"}'));
  });
});
