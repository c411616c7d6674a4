/**
 * Temporal loses all of its data, or is restored from yesterday's backup, while Postgres and Stripe have
 * today: workflows are gone, or back at an earlier step. Postgres decides, so every top-up still ends right.
 * Workers are not restarted.
 */
import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import { sql } from '../../src/store/database.ts';
import { requestRefund } from '../../src/store/top-ups/request-refund.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { listScheduleFaults, schedulesOf } from '../../src/temporal/schedules.ts';
import { reportPayment } from '../../src/temporal/start-top-up.ts';
import { proveBooks } from '../support/books.ts';
import { startOwnTemporal } from '../support/own-servers.ts';
import { until } from '../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../support/top-up-harness.ts';

type OwnTemporal = Awaited<ReturnType<typeof startOwnTemporal>>;

for (const [what, isBackedUp] of [
  ['has lost all of its data', false],
  ['is restored to yesterday', true],
] as const) {
  describe(`when Temporal ${what}`, () => provesTopUps(isBackedUp));
}

function provesTopUps(isBackedUp: boolean): void {
  let temporal: OwnTemporal;
  let harness: TopUpHarness;
  let consumer: Consumer;
  /** Opened yesterday. */
  const old: { waiting: TopUp; nudged: TopUp; paid: TopUp; refunded: TopUp } = {} as never;
  /** Requested today. */
  const lost: { checkout: TopUp; direct: TopUp; automatic: TopUp } = {} as never;

  before(async () => {
    temporal = await startOwnTemporal();
    harness = await openTopUpHarness({
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: 'default',
      FIRST_ASK_MS: '3600000',
      RECONCILE_EVERY_SECONDS: '10',
      ...QUICK_RETRIES,
    });
    await harness.startWorker();
    consumer = await harness.newConsumer();
    await yesterday();
    const backup = `${temporal.dataDir}-backup`;
    await temporal.crash();
    await cp(temporal.dataDir, backup, { recursive: true });
    await temporal.restart();
    await today();
    await temporal.crash();
    await rm(temporal.dataDir, { recursive: true });
    if (isBackedUp) await cp(backup, temporal.dataDir, { recursive: true });
    await temporal.restart();
    await anHourPasses();
    await harness.forgetFaults();
    await workersCreateSchedules();
  });
  after(async () => {
    await harness?.close();
    await temporal?.remove();
  });

  async function yesterday(): Promise<void> {
    const refunded = await harness.requestDirect(consumer, 5);
    assert.ok(refunded.kind === 'completed', refunded.kind);
    old.refunded = refunded.topUp;
    for (const name of ['waiting', 'nudged', 'paid'] as const) {
      old[name] = await harness.checkout(consumer, 5);
    }
  }

  async function today(): Promise<void> {
    await harness.workflow(old.nudged.id).executeUpdate('retry');
    await harness.pay(old.paid.sessionUrl);
    await harness.statusBecomes(old.paid, 'completed');
    lost.checkout = await harness.checkout(consumer, 5);
    const away = { method: 'POST', kind: 'error', status: 503, times: 1_000 };
    for (const path of ['/v1/payment_intents', '/v1/refunds']) {
      await harness.control('faults', { ...away, path });
    }
    const request = await requestRefund(harness.database, old.refunded.id, undefined);
    assert.equal(request.kind, 'requested');
    const direct = await harness.request(consumer, 'direct', 5, 'direct');
    assert.ok(direct.kind === 'pending', direct.kind);
    lost.direct = direct.topUp;
    await harness.topUpAutomatically(consumer, 1_000);
    await harness.charge(consumer);
    lost.automatic = await until(async () => (await harness.automaticTopUps(consumer))[0]);
    for (const topUp of [lost.direct, lost.automatic]) {
      await until(async () => (await harness.topUp(topUp.id)).isClaimed);
    }
    await until(async () => (await harness.waitingNotices()) === 0);
  }

  async function anHourPasses(): Promise<void> {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '1 hour',
        updated_at = updated_at - interval '1 hour'
    `);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.reversals set created_at = created_at - interval '1 hour'
    `);
  }

  async function workersCreateSchedules(): Promise<void> {
    const schedules = schedulesOf(harness.config);
    await until(async () => (await listScheduleFaults(harness.temporal, schedules)).length === 0);
  }

  it('a checkout that it has forgotten is credited when it is paid', async () => {
    await harness.pay(lost.checkout.sessionUrl);
    await harness.statusBecomes(lost.checkout, 'completed');
  });

  it('checkouts that were open yesterday are credited when they are paid', async () => {
    for (const topUp of [old.waiting, old.nudged]) {
      await harness.pay(topUp.sessionUrl);
      await harness.statusBecomes(topUp, 'completed');
    }
  });

  it('a payment that was credited since is not credited again', async () => {
    await reportPayment(harness.temporal, old.paid);
    await harness.workflow(old.paid.id).result();
    assert.equal((await harness.topUp(old.paid.id)).status, 'completed');
  });

  it('a direct top-up that it has forgotten ends, and an automatic one is made', async () => {
    await harness.statusBecomes(lost.automatic, 'completed');
    await harness.statusBecomes(lost.direct, 'failed');
    assert.deepEqual(await harness.paymentsOf(lost.direct), []);
    assert.equal((await harness.paymentsOf(lost.automatic)).length, 1);
  });

  it('the next charge that leaves too little tops up again', async () => {
    await harness.charge(consumer);
    const next = await until(async () => (await harness.automaticTopUps(consumer))[1]);
    await harness.statusBecomes(next, 'completed');
  });

  it('a refund that it has forgotten is made', async () => {
    await harness.statusBecomes(old.refunded, 'refunded');
  });

  it('the books are correct', async () => {
    await until(async () => (await harness.waitingNotices()) === 0);
    // $10.00 by hand, four checkouts of $5.00, and two automatic top-ups of $20.00; the refund took its $5.00 back.
    assert.equal((await harness.books(consumer)).credited, 10_000_000 + 20_000_000 + 40_000_000);
    await proveBooks(harness.env);
  });
}
