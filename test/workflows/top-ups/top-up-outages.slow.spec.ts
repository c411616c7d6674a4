/** Outages and deaths: a paid top-up is credited once, and no promise is broken. */
import assert from 'node:assert/strict';
import { tsToMs } from '@temporalio/common/lib/time.js';
import type { Micros } from '../../../src/domain/money.ts';
import { choosePort } from '../../support/ports.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { withdrawTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import { findTopUp } from '../../../src/store/top-ups/top-ups.ts';
import { createTemporalClient, type TemporalClient } from '../../../src/temporal/client.ts';
import { startDirectTopUp } from '../../../src/temporal/start-top-up.ts';
import { holdConsumer } from '../../support/row-locks.ts';
import { until } from '../../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

/** A value of `temporal.api.enums.v1.TimeoutType`. */
const HEARTBEAT_TIMEOUT = 4;

describe('a top-up and outages', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '300', TOP_UP_ANSWER_MS: '1000' });
  });

  after(() => harness.close());

  async function clientOfNoServer(): Promise<TemporalClient> {
    const address = `127.0.0.1:${await choosePort()}`;
    const away = createTemporalClient({ ...harness.config.temporal, address });
    assert.equal(await away.isUp(), false);
    return away;
  }

  it('is credited though the processor never reports anything', async () => {
    const worker = await harness.startWorker();
    const consumer = await harness.newConsumer();
    await harness.control('webhooks', { mode: 'drop' });
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    await harness.control('webhooks', { mode: 'deliver' });
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
    await worker.stop();
  });

  it('keeps a webhook that arrives while no worker runs, and hands it over later', async () => {
    const first = await harness.startWorkerProcess();
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    first.kill('SIGKILL');
    await first.exited;
    await harness.pay(topUp.sessionUrl);
    await until(async () => (await harness.waitingNotices()) > 0);

    const second = await harness.startWorker();
    await harness.statusBecomes(topUp, 'completed');
    await until(async () => (await harness.waitingNotices()) === 0);
    assert.deepEqual(await harness.books(consumer), {
      credited: 25_000_000,
      movements: 1,
      lots: 1,
      lotsMicros: 25_000_000,
    });
    await second.stop();
  });

  it('continues after the heartbeat timeout of a worker killed inside a step', async () => {
    const first = await harness.startWorkerProcess();
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    const held = await holdConsumer(
      harness.config.databaseUrl,
      wireId('consumer', consumer.consumerId),
    );
    await harness.pay(topUp.sessionUrl);
    await held.waited(1);
    first.kill('SIGKILL');
    await first.exited;
    await held.release();
    const second = await harness.startWorker();
    await harness.statusBecomes(topUp, 'completed');
    // So after 5 s, and not after the 15 s that a step may take. The history has a step only once Temporal
    // has its result.
    await harness.workflow(topUp.id).result();
    const { events } = await harness.workflow(topUp.id).fetchHistory();
    const timeouts = events?.flatMap(
      (event) =>
        event.activityTaskStartedEventAttributes?.lastFailure?.timeoutFailureInfo?.timeoutType ??
        [],
    );
    assert.deepEqual([...new Set(timeouts)], [HEARTBEAT_TIMEOUT]);
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
    await second.stop();
  });

  it('sends a heartbeat each second during a slow step, far more often than the timeout requires', async () => {
    const worker = await harness.startWorker();
    const consumer = await harness.newConsumer();
    const path = '/v1/checkout/sessions';
    await harness.control('faults', { method: 'POST', path, kind: 'delay', ms: 9_000, times: 20 });
    const result = await harness.request(consumer, 'checkout', 25);
    assert.ok(result.kind === 'pending', result.kind);
    const { topUp } = result;
    let last: { readonly attempt: number; readonly beatMs: number } | undefined;
    // By default, the SDK would send one in four seconds.
    await until(
      async () => {
        const { raw } = await harness.workflow(topUp.id).describe();
        const { attempt, lastHeartbeatTime } = raw.pendingActivities?.[0] ?? {};
        if (!lastHeartbeatTime) return false;
        const now = { attempt: attempt ?? 0, beatMs: tsToMs(lastHeartbeatTime) };
        const sinceMs = now.attempt === last?.attempt ? now.beatMs - last.beatMs : 0;
        last = now;
        return sinceMs > 0 && sinceMs < 2_000;
      },
      { intervalMs: 200 },
    );
    await harness.forgetFaults();
    await until(async () => (await harness.topUp(topUp.id)).sessionUrl);
    await worker.stop();
  });

  it('reports that nothing happened while Temporal is down, and leaves no trace', async () => {
    const consumer = await harness.newConsumer();
    const away = await clientOfNoServer();
    const result = await harness.requestOver(away, consumer, 'direct', 10, 'key');
    assert.deepEqual(result, { kind: 'unavailable' });
    await away.close();
    // The key is free again, for any amount.
    const worker = await harness.startWorker();
    assert.equal((await harness.requestDirect(consumer, 11, 'key')).kind, 'completed');
    assert.equal((await harness.books(consumer)).credited, 11_000_000);
    await worker.stop();
  });

  it('continues, and once, when a worker comes after the caller was told that it is pending', async () => {
    const consumer = await harness.newConsumer();
    const first = await harness.request(consumer, 'direct', 10, 'key');
    assert.equal(first.kind, 'pending');
    const worker = await harness.startWorker();
    const again = await harness.requestDirect(consumer, 10, 'key');
    assert.equal(again.kind, 'completed');
    assert.ok('topUp' in first && 'topUp' in again);
    assert.equal(first.topUp.id, again.topUp.id);
    assert.equal((await harness.books(consumer)).credited, 10_000_000);
    await worker.stop();
  });

  it('keeps a top-up that was accepted, though it is requested again while Temporal is down', async () => {
    const consumer = await harness.newConsumer();
    const first = await harness.request(consumer, 'direct', 10, 'key');
    assert.equal(first.kind, 'pending');
    const away = await clientOfNoServer();
    const again = await harness.requestOver(away, consumer, 'direct', 10, 'key');
    await away.close();
    assert.equal(again.kind, 'pending');
    assert.ok('topUp' in first && 'topUp' in again);
    assert.equal(again.topUp.id, first.topUp.id);
    const worker = await harness.startWorker();
    await harness.statusBecomes(first.topUp, 'completed');
    assert.equal((await harness.books(consumer)).credited, 10_000_000);
    await worker.stop();
  });

  it('takes nothing for a request that was withdrawn while it waited for a worker', async () => {
    const consumer = await harness.newConsumer();
    const admitted = await admitTopUp(harness.database, {
      ...consumer,
      method: 'direct',
      amountMicros: 10_000_000 as Micros,
    });
    assert.ok(admitted.kind === 'admitted');
    const { topUp } = admitted;
    await until(async () => {
      const answer = await startDirectTopUp(harness.temporal, topUp, { timeoutMs: 1_000 });
      return answer.kind === 'timed_out' && !(await harness.hasEnded(topUp));
    });
    assert.equal(await withdrawTopUp(harness.database, topUp.id), true);

    const worker = await harness.startWorker();
    assert.equal((await harness.workflow(topUp.id).result()).status, 'withdrawn');
    assert.equal(await findTopUp(harness.database, topUp.id), null);
    assert.deepEqual(await harness.paymentsOf(topUp), []);
    await worker.stop();
  });
});
