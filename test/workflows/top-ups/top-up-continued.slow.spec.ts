/** A top-up outlives any length of history: a run continues as a new one, and loses nothing. */
import assert from 'node:assert/strict';
import { wireId } from '../../../src/domain/ids.ts';
import { reportReversal } from '../../../src/temporal/start-reversals.ts';
import { retryUnlessEnded } from '../../support/retry-unless-ended.ts';
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
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      STEP_RETRY_MS: '10',
      ...temporal.env,
    });
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
    // A continued run has no static summary and details.
    const details = JSON.stringify(await handle.query('__temporal_workflow_metadata'));
    const id = wireId('topUp', topUp.id);
    assert.match(details, new RegExp(`Top-up \`${id}\`: .*25\\.00, checkout`));
    assert.match(details, /At the processor: `pi_\w+`, `cs_test_\w+`/);
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('reads refunds and disputes after their run continued as a new one', async () => {
    const result = await harness.requestDirect(await harness.newConsumer(), 10);
    assert.ok(result.kind === 'completed');
    const { id, paymentIntentId } = result.topUp;
    const down = { method: 'GET', path: '/v1/disputes', kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', down);
    await harness.control('disputes', { payment_intent: paymentIntentId });
    const handle = harness.reversals(id);
    const { runId: first } = await until(() => handle.describe().catch(() => undefined));
    while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await reportReversal(harness.temporal, result.topUp);
    await until(async () => (await handle.describe()).runId !== first);
    await harness.forgetFaults();
    await retryUnlessEnded(handle);
    await harness.statusBecomes(result.topUp, 'disputed');
    assert.deepEqual(await handle.result(), {
      status: 'disputed',
      heldDollars: 10,
      debtDollars: 0,
      open: ['dispute'],
      failedRefund: null,
      invoiceRefusal: null,
      unnoted: [],
    });
  });
});
