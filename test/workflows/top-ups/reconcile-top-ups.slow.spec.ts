/** Reconciliation: events without a webhook are found in the processor's books, and repaired or listed. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { dollarsOf } from '../../../src/domain/money.ts';
import { row, sql } from '../../../src/store/database.ts';
import {
  getWalkStart,
  listDifferences,
  listUnsettled,
  recordWalk,
} from '../../../src/store/top-ups/reconciliation.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { authenticate } from '../../../src/stripe/authentication.ts';
import { reconcileNowId } from '../../../src/temporal/reconcile-now.ts';
import { scheduleIdOf } from '../../../src/temporal/schedules.ts';
import { Type } from 'typebox';
import { DAY_MS, HOUR_MS } from '../../../src/domain/durations.ts';
import { farebox, until, type ServerProcess } from '../../support/stack.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';
import { credit } from '../../support/evidence.ts';

const ONCE_25 = { credited: 25_000_000, movements: 1, lots: 1, lotsMicros: 25_000_000 };
const timeRow = row(Type.Object({ time: Type.String() }));

describe('reconciliation', () => {
  let harness: TopUpHarness;
  let worker: ServerProcess;
  let consumer: Consumer;

  before(async () => {
    // The processor sends no webhooks, and no workflow asks by itself.
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      RECONCILE_REVIEW_MS: '300,1000,3000,15000',
    });
    worker = await harness.startWorkerProcess();
    await harness.control('webhooks', { mode: 'drop' });
  });
  beforeEach(async () => {
    consumer = await harness.newConsumer();
  });
  after(async () => {
    await harness?.close();
  });

  const reconcile = () => harness.reconcile();
  /** Until nothing differs: on a busy machine, a workflow that a reconciliation nudged may run longer than that. */
  const settle = () => until(async () => (await reconcile()).differing === 0);

  /** Kind, and the amounts there and here in dollars. */
  async function differencesOf(topUp: Pick<TopUp, 'id'>) {
    const all = await listDifferences(harness.database);
    return all
      .filter(({ topUpId }) => topUpId === topUp.id)
      .map((found) => [
        found.kind,
        dollarsOf(found.processorMicros),
        dollarsOf(found.ledgerMicros),
      ]);
  }

  async function change(topUp: TopUp, assignment: ReturnType<typeof sql.fragment>): Promise<void> {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set ${assignment} where id = ${topUp.id}
    `);
  }

  /** A payment that was made at the processor without Farebox. */
  function payElsewhere(
    cents: number,
    metadata: Stripe.MetadataParam,
  ): Promise<Stripe.PaymentIntent> {
    return harness.stripe.paymentIntents.create({
      amount: cents,
      currency: 'usd',
      confirm: true,
      payment_method: 'pm_card_visa',
      allowed_payment_method_types: ['card'],
      metadata,
    });
  }

  it('credits a paid checkout without any webhook, once', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    assert.ok((await reconcile()).nudged >= 1);
    await settle();
    assert.deepEqual(await harness.books(consumer), ONCE_25);
    await reconcile();
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('credits a top-up whose workflow was terminated', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await harness.workflow(topUp.id).terminate('to see who mends it');
    await harness.pay(topUp.sessionUrl);
    await settle();
    assert.equal((await harness.topUp(topUp.id)).status, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  for (const status of ['expired', 'failed'] as const) {
    it(`credits a paid top-up that had ${status}`, async () => {
      const topUp = await harness.checkout(consumer, 25);
      await harness.workflow(topUp.id).terminate();
      await change(
        topUp,
        sql.fragment`status = ${status}, updated_at = now() - interval '29 days'`,
      );
      await harness.pay(topUp.sessionUrl);
      await settle();
      assert.deepEqual(await harness.books(consumer), ONCE_25);
    });
  }

  it('ends a top-up whose workflow was terminated and that can no longer be paid', async () => {
    const checkout = await harness.checkout(consumer, 25);
    const direct = await harness.checkout(consumer, 30);
    for (const topUp of [checkout, direct]) {
      await harness.workflow(topUp.id).terminate();
      await change(topUp, sql.fragment`created_at = now() - interval '11 minutes'`);
    }
    await harness.control(`sessions/${checkout.sessionId}/expire-now`);
    await change(checkout, sql.fragment`session_expires_at = now()`);
    // As if the worker had been cut off before the card was charged.
    await change(direct, sql.fragment`method = 'direct', session_id = null, session_url = null`);
    await reconcile();
    await harness.statusBecomes(checkout, 'expired');
    await harness.statusBecomes(direct, 'completed');
    assert.equal((await harness.books(consumer)).credited, 30_000_000);
  });

  it('leaves an open checkout alone, and payments that are not ours', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await payElsewhere(4_200, {});
    await payElsewhere(4_200, { top_up_id: 'an id of somebody else' });
    const { nudged, differing } = await reconcile();
    assert.deepEqual([nudged, differing], [0, 0]);
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');
  });

  it('lists a payment of another amount, credits nothing, and removes it from the list once corrected', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await change(topUp, sql.fragment`amount_micros = 26000000`);
    await harness.pay(topUp.sessionUrl);
    await reconcile();
    assert.deepEqual(await differencesOf(topUp), [['payment_mismatch', 25, 0]]);
    const [first] = await listDifferences(harness.database);
    await reconcile();
    assert.deepEqual(
      (await listDifferences(harness.database))[0],
      first,
      'since when it was first met',
    );
    assert.equal((await harness.books(consumer)).credited, 0);

    await change(topUp, sql.fragment`amount_micros = 25000000`);
    await settle();
    assert.deepEqual(await differencesOf(topUp), []);
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('lists a payment that Farebox did not start, until it is refunded', async () => {
    const topUp = await harness.checkout(consumer, 25);
    const id = wireId('topUp', topUp.id);
    const intent = await payElsewhere(2_600, { top_up_id: id });
    await reconcile();
    assert.deepEqual(await differencesOf(topUp), [['payment_mismatch', 26, 0]]);
    await harness.stripe.refunds.create({ payment_intent: intent.id });
    await settle();
    assert.equal((await harness.books(consumer)).credited, 0);
  });

  it('lists two such payments of one top-up that it finds at once', async () => {
    const topUp = await harness.checkout(consumer, 25);
    const metadata = { top_up_id: wireId('topUp', topUp.id) };
    const intents = [await payElsewhere(2_600, metadata), await payElsewhere(2_700, metadata)];
    await reconcile();
    assert.deepEqual(await differencesOf(topUp), [['payment_mismatch', 53, 0]]);
    for (const { id } of intents) await harness.stripe.refunds.create({ payment_intent: id });
    await settle();
  });

  it('lists a second payment of one top-up, until it is refunded', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await settle();
    const second = await payElsewhere(2_500, { top_up_id: wireId('topUp', topUp.id) });
    await reconcile();
    assert.deepEqual(await differencesOf(topUp), [['paid_twice', 50, 25]]);
    assert.deepEqual(await harness.books(consumer), ONCE_25);
    await harness.stripe.refunds.create({ payment_intent: second.id });
    await settle();
    assert.deepEqual(await differencesOf(topUp), []);
  });

  it('lists a payment for a top-up that the ledger has lost', async () => {
    const lost = 'tu_01a1fd3e11307735a9c9eeaa940085c9';
    const intent = await payElsewhere(700, { top_up_id: lost });
    await reconcile();
    const id = uuidOf('topUp', lost) ?? '';
    assert.deepEqual(await differencesOf({ id }), [['unknown_top_up', 7, 0]]);
    await harness.stripe.refunds.create({ payment_intent: intent.id });
    await settle();
    assert.deepEqual(await differencesOf({ id }), []);
  });

  for (const stage of [
    'is refunded',
    'is disputed',
    'is disputed and lost',
    'is warned of',
  ] as const) {
    it(`takes back what ${stage} at the processor without a webhook`, async () => {
      const topUp = await paidTopUp();
      const intent = topUp.paymentIntentId ?? '';
      if (stage === 'is refunded') await harness.stripe.refunds.create({ payment_intent: intent });
      else if (stage === 'is warned of')
        await harness.control('fraud-warnings', { payment_intent: intent });
      else await harness.control('disputes', { payment_intent: intent });
      if (stage === 'is disputed and lost') {
        await settle();
        const { data } = await harness.stripe.disputes.list({ payment_intent: intent });
        await harness.control(`disputes/${data[0]?.id}/close`, { status: 'lost' });
      }
      assert.deepEqual(await differencesOf(topUp), []);
      assert.ok((await reconcile()).nudged >= 1);
      await settle();
      const status = {
        'is refunded': 'refunded',
        'is disputed': 'disputed',
        'is warned of': 'disputed',
      } as const;
      const expected = stage === 'is disputed and lost' ? 'charged_back' : status[stage];
      assert.equal((await harness.topUp(topUp.id)).status, expected);
      assert.equal((await reconcile()).nudged, 0, 'and looks at it no more');
    });
  }

  it('continues after a dispute in the currency of the bank, an inquiry too', async () => {
    const topUps = [await paidTopUp(), await paidTopUp()];
    for (const [index, { paymentIntentId: payment_intent }] of topUps.entries())
      await harness.control('disputes', { payment_intent, inquiry: index === 0, currency: 'eur' });
    await settle();
    const [asked, disputed] = await Promise.all(topUps.map(({ id }) => harness.topUp(id)));
    assert.deepEqual([asked?.status, disputed?.status], ['completed', 'disputed']);
  });

  it('credits a refund again that fails at the processor without a webhook', async () => {
    const topUp = await paidTopUp();
    const intent = topUp.paymentIntentId ?? '';
    const refund = await harness.stripe.refunds.create({ payment_intent: intent });
    await settle();
    assert.equal((await harness.books(consumer)).credited, 0);
    await harness.control(`refunds/${refund.id}/fail`);
    await settle();
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('makes a requested refund that its workflow dropped', async () => {
    const topUp = await paidTopUp();
    await requestRefund(harness.database, topUp.id, undefined);
    await harness.database.query(sql.typeAlias('nothing')`delete from farebox.outbox`);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.reversals set created_at = now() - interval '11 minutes'
      where top_up_id = ${topUp.id}
    `);
    await settle();
    const { data } = await harness.stripe.refunds.list({
      payment_intent: topUp.paymentIntentId ?? '',
    });
    assert.deepEqual(
      data.map(({ amount }) => amount),
      [2_500],
    );
  });

  async function paidTopUp(): Promise<TopUp> {
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await settle();
    return harness.topUp(topUp.id);
  }

  it('lists a credit without a payment, until it is paid', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await harness.workflow(topUp.id).terminate();
    await credit(harness.database, topUp.id);
    await change(
      topUp,
      sql.fragment`status = 'disputed', payment_intent_id = null, seen_verdict = null,
        seen_micros = null, seen_at = null`,
    );
    await reconcile();
    assert.deepEqual(await differencesOf(topUp), [['not_paid', 0, 25]]);

    await assert.rejects(
      farebox(['reconcile'], { env: harness.env }),
      (error: { stdout: string }) => {
        assert.match(
          error.stdout,
          /\d differences?:\ntu_\w+: credited but not paid .*ledger \$25\.00; no payment\)/,
        );
        return true;
      },
    );
    await assert.rejects(
      farebox(['reconcile', '--json'], { env: harness.env }),
      (error: { stdout: string }) => {
        const { differences } = JSON.parse(error.stdout) as { differences: object[] };
        const [{ since, ...difference }] = differences as [{ since: string }];
        assert.match(since, /^\d{4}-.*Z$/);
        assert.deepEqual(difference, {
          topUpId: wireId('topUp', topUp.id),
          kind: 'not_paid',
          processor: 0,
          ledger: 25,
          paymentIntentIds: [],
          creditedPaymentIntentId: null,
        });
        return true;
      },
    );
    await harness.pay(topUp.sessionUrl);
    assert.match(await farebox(['reconcile'], { env: harness.env }), /No differences\.\n$/);
    const answer = JSON.parse(
      await farebox(['reconcile', '--json'], { env: harness.env }),
    ) as object;
    assert.deepEqual(Object.keys(answer), ['ok', 'looked', 'nudged', 'differences']);
  });

  it('goes through more than one page of each list, and compares several top-ups at a time', async () => {
    const topUps = await Promise.all(
      Array.from({ length: 25 }, async () => harness.checkout(await harness.newConsumer(), 5)),
    );
    for (const { sessionUrl } of topUps) await harness.pay(sessionUrl);
    for (let n = 0; n < 105; n += 1) await payElsewhere(100, {});
    const path = '/v1/checkout/sessions';
    await harness.control('faults', { method: 'GET', path, kind: 'delay', ms: 2_000, times: 25 });
    const reconciled = reconcile();
    reconciled.catch(() => {});
    await until(async () => (await harness.delayed()) > 1, { intervalMs: 50 });
    assert.ok((await reconciled).looked >= 25);
    for (const topUp of topUps) await harness.statusBecomes(topUp, 'completed');
    await harness.forgetFaults();
  });

  it('walks the processor’s books before it asks about our own unfinished top-ups', async () => {
    await reconcile();
    const run = harness.temporal.client.workflow.getHandle(reconcileNowId(harness.temporal));
    const { events } = await run.fetchHistory();
    const steps = (events ?? []).flatMap(
      ({ activityTaskScheduledEventAttributes: step }) => step?.activityType?.name ?? [],
    );
    assert.deepEqual([...new Set(steps)].slice(0, 4), [
      'planWalk',
      'walkPage',
      'examineUnsettled',
      'endWalk',
    ]);
  });

  it('respects the processor’s Retry-After', async () => {
    const retryAfter = { kind: 'error', status: 429, headers: { 'retry-after': '3' } };
    await harness.control('faults', {
      method: 'GET',
      path: '/v1/balance_transactions',
      ...retryAfter,
    });
    const startedAtMs = Date.now();
    await reconcile();
    assert.ok(Date.now() - startedAtMs >= 3_000);
  });

  it('resumes where it was when its worker is killed, and from the same point when it is terminated', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await recordWalk(harness.database, new Date(Date.now() - 10 * DAY_MS).toISOString());
    const before = await walkedUntil();
    await harness.control('faults', {
      method: 'GET',
      path: '/v1/balance',
      kind: 'delay',
      ms: 3_000,
    });
    const { workflow } = harness.temporal.client;
    const handle = workflow.getHandle(reconcileNowId(harness.temporal));
    const first = reconcile();
    first.catch(() => {});
    await until(async () => {
      const { raw } = await handle.describe().catch(() => ({ raw: undefined }));
      return raw?.pendingActivities?.some(({ activityType }) => activityType?.name === 'walkPage');
    });
    worker.kill('SIGKILL');
    await worker.exited;
    worker = await harness.startWorkerProcess();
    await first;
    await settle();
    assert.deepEqual(await harness.books(consumer), ONCE_25);
    assert.ok((await walkedUntil()) >= before);

    const walked = await walkedUntil();
    await harness.control('faults', {
      method: 'GET',
      path: '/v1/balance',
      kind: 'delay',
      ms: 3_000,
    });
    const second = reconcile();
    second.catch(() => {});
    await until(async () => (await handle.describe()).status.name === 'RUNNING');
    await handle.terminate();
    await assert.rejects(second);
    assert.equal(await walkedUntil(), walked);
  });

  const walkedUntil = () =>
    harness.database.oneFirst(sql.type(timeRow)`
      select walked_until as time from farebox.reconciliation
    `);

  it('starts an hour before the end of the last walk, and once a day three days before it', async () => {
    const overlapMs = async () =>
      Date.parse(await walkedUntil()) - Date.parse(await getWalkStart(harness.database));
    await recordWalk(harness.database, new Date().toISOString());
    const walked = await walkedUntil();
    await recordWalk(harness.database, new Date(0).toISOString());
    assert.equal(await walkedUntil(), walked, 'it never moves back');
    assert.equal(await overlapMs(), HOUR_MS);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.reconciliation set walked_until = walked_until - interval '1 day'
    `);
    assert.equal(await overlapMs(), 3 * DAY_MS);
  });

  it('checks a checkout after its expiry, until the processor reports its end', async () => {
    const topUp = await harness.checkout(consumer, 25);
    assert.equal(await isUnsettled(topUp), false);
    await change(topUp, sql.fragment`session_expires_at = now()`);
    assert.equal(await isUnsettled(topUp), true);
    await harness.control(`sessions/${topUp.sessionId}/expire-now`);
    await reconcile();
    await harness.statusBecomes(topUp, 'expired');
    assert.equal(await isUnsettled(topUp), false);
  });

  it('leaves the cardholder a day to confirm a payment, and then cancels it, though its workflow was terminated', async () => {
    assert.equal((await harness.requestDirect(consumer, 5)).kind, 'completed');
    await harness.saveCard(consumer, 'pm_card_authenticationRequired');
    const asked = await harness.request(consumer, 'direct', 25);
    assert.ok(asked.kind === 'pending', asked.kind);
    const topUp = await until(async () => {
      const now = await harness.topUp(asked.topUp.id);
      return now.authenticationAskedAt !== null && now;
    });
    await harness.workflow(topUp.id).terminate();
    const url = 'https://example.com/done';
    const { kind } = await authenticate(harness.stripe, topUp.paymentIntentId ?? '', url);
    assert.equal(kind, 'redirect');
    assert.equal(await isUnsettled(topUp), false);
    await change(topUp, sql.fragment`created_at = now() - interval '25 hours'`);
    assert.equal(await isUnsettled(topUp), true);
    await reconcile();
    await harness.statusBecomes(topUp, 'expired');
    assert.deepEqual(await harness.paymentsOf(topUp), []);
  });

  async function isUnsettled(topUp: TopUp): Promise<boolean> {
    const page = { afterId: '00000000-0000-0000-0000-000000000000', limit: 1_000 };
    return (await listUnsettled(harness.database, page)).includes(topUp.id);
  }

  it('is started by a schedule, one at a time', async () => {
    const schedule = harness.temporal.client.schedule.getHandle(
      scheduleIdOf(harness.temporal, 'reconcileTopUps'),
    );
    const { policies, spec, action } = await schedule.describe();
    assert.equal(policies.overlap, 'SKIP');
    assert.equal(policies.catchupWindow, 60_000);
    assert.equal(spec.intervals?.[0]?.every, DAY_MS);
    assert.equal(action.workflowType, 'reconcileTopUps');

    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await schedule.trigger();
    await harness.statusBecomes(topUp, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('reports that Temporal is down', async () => {
    const env = { ...harness.env, TEMPORAL_ADDRESS: '127.0.0.1:9' };
    await assert.rejects(farebox(['reconcile'], { env }), /Temporal did not respond/);
  });
});
