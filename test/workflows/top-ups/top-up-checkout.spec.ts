/** Specification section 4.1, rules 2 and 3: a paid checkout is credited, exactly once. */
import assert from 'node:assert/strict';
import { wireId } from '../../../src/domain/ids.ts';
import { reportPayment, startCheckout } from '../../../src/temporal/start-top-up.ts';
import { recordWebhook } from '../../../src/stripe/webhook.ts';
import { sql } from '../../../src/store/database.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { withdrawTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { until } from '../../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

const ONCE_25 = { credited: 25_000_000, movements: 1, lots: 1, lotsMicros: 25_000_000 };
const NOTHING = { credited: 0, movements: 0, lots: 0, lotsMicros: 0 };

describe('a top-up through the hosted checkout', () => {
  let harness: TopUpHarness;

  before(async () => {
    // Asks unprompted after an hour: everything here happens because of a webhook.
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    await harness.startWorker();
  });

  afterEach(() => harness.control('webhooks', { mode: 'deliver' }));

  after(async () => {
    await harness.close();
  });

  it('credits the balance when the processor reports the payment', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    assert.deepEqual(await harness.books(consumer), NOTHING);

    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('stays payable after a declined card', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    assert.equal(await harness.pay(topUp.sessionUrl, '4000000000000002'), 402);
    await until(async () => (await harness.waitingNotices()) === 0);
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');

    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('credits once for ten identical events at once, and for late ones', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.control('webhooks', { mode: 'drop' });
    await harness.pay(topUp.sessionUrl);

    await Promise.all(Array.from({ length: 10 }, () => report(topUp, 'evt_same')));
    await harness.statusBecomes(topUp, 'completed');
    await Promise.all(Array.from({ length: 10 }, (_, n) => report(topUp, `evt_late_${n}`)));
    await until(async () => (await harness.waitingNotices()) === 0);
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('credits once when it is nudged again and again after its end', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    for (let n = 0; n < 3; n += 1) await reportPayment(harness.temporal, topUp);
    assert.equal((await harness.workflow(topUp.id).result()).status, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('credits nothing for an event that says paid when the processor does not', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await report(topUp, 'evt_too_early');
    await until(async () => (await harness.waitingNotices()) === 0);
    await harness.workflow(topUp.id).executeUpdate('retry');
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('returns the same session for a repeated request, and refuses the key for another amount', async () => {
    const consumer = await harness.newConsumer();
    const results = await Promise.all(
      Array.from({ length: 5 }, () => harness.request(consumer, 'checkout', 25, 'key-1')),
    );
    const urls = results.map((result) => 'topUp' in result && result.topUp.sessionUrl);
    assert.equal(new Set(urls).size, 1);
    assert.match(String(urls[0]), /^http/);
    assert.equal((await harness.request(consumer, 'checkout', 26, 'key-1')).kind, 'key_reused');
    assert.equal((await harness.request(consumer, 'direct', 25, 'key-1')).kind, 'key_reused');
  });

  it('credits once after its workflow was terminated', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.workflow(topUp.id).terminate('to see whether it comes back');
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('expires with its session', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.control(`sessions/${topUp.sessionId}/expire-now`);
    await harness.statusBecomes(topUp, 'expired');
    assert.equal((await harness.workflow(topUp.id).result()).status, 'expired');
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('credits one that had expired when it turns out to be paid', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.workflow(topUp.id).terminate();
    await setColumn(topUp, sql.fragment`status = 'expired'`);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('does nothing when its row was withdrawn before it started', async () => {
    const consumer = await harness.newConsumer();
    const admitted = await admitTopUp(harness.database, {
      ...consumer,
      method: 'checkout',
      amountMicros: 25_000_000 as TopUp['amountMicros'],
    });
    assert.equal(admitted.kind, 'admitted');
    assert.ok('topUp' in admitted);
    assert.equal(await withdrawTopUp(harness.database, admitted.topUp.id), true);
    const answer = await startCheckout(harness.temporal, admitted.topUp, { timeoutMs: 10_000 });
    assert.deepEqual(answer, {
      kind: 'answered',
      value: { status: 'withdrawn', sessionUrl: null, failure: null },
    });
    assert.equal((await harness.workflow(admitted.topUp.id).result()).status, 'withdrawn');
  });

  it('is credited when a delayed payment succeeds, and fails when it fails', async () => {
    const consumer = await harness.newConsumer();
    const succeeding = await harness.checkout(consumer, 25);
    const failing = await harness.checkout(consumer, 30);
    await harness.pay(succeeding.sessionUrl, '000123456789');
    await harness.pay(failing.sessionUrl, '000111111113');
    await until(async () => {
      const handle = harness.workflow(succeeding.id);
      const details = JSON.stringify(await handle.query('__temporal_workflow_metadata'));
      return details.includes('the payer has authorized a debit');
    });
    assert.deepEqual(await harness.books(consumer), NOTHING);

    await harness.control(`async/${succeeding.sessionId}`, { outcome: 'succeeded' });
    await harness.control(`async/${failing.sessionId}`, { outcome: 'failed' });
    await harness.statusBecomes(succeeding, 'completed');
    await harness.statusBecomes(failing, 'failed');
    assert.deepEqual((await harness.workflow(failing.id).result()).failure, {
      code: 'payment_failed',
      message: 'The bank did not complete the payment. Top up again with another account or card.',
    });
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('stays open while the processor shows it as open, after any report or question', async () => {
    const consumer = await harness.newConsumer();
    const open = await harness.checkout(consumer, 25);
    await report(open, 'evt_expired', 'checkout.session.expired');
    await until(async () => (await harness.waitingNotices()) === 0);
    await harness.workflow(open.id).executeUpdate('retry');
    assert.equal((await harness.topUp(open.id)).status, 'pending');

    // A debit that its bank is about to make can no longer be stopped.
    await harness.pay(open.sessionUrl, '000123456789');
    const asked = await harness.workflow(open.id).executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(asked.status, 'pending');
    await harness.control(`async/${open.sessionId}`, { outcome: 'succeeded' });
    await harness.statusBecomes(open, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  it('describes itself to the processor, offers to save the card, and stays open for 24 hours', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    const id = wireId('topUp', topUp.id);
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
    assert.equal(session.client_reference_id, id);
    assert.deepEqual(session.metadata, { top_up_id: id });
    assert.equal(session.expires_at - session.created, 24 * 3_600);
    assert.equal(topUp.sessionExpiresAt, null);
    assert.match(await (await fetch(topUp.sessionUrl ?? '')).text(), /Save this card/);
  });

  it('opens one session though the processor’s answers are lost', async () => {
    const consumer = await harness.newConsumer();
    await harness.control('faults', {
      method: 'POST',
      path: '/v1/customers',
      kind: 'do_then_drop',
      times: 2,
    });
    await harness.control('faults', {
      method: 'POST',
      path: '/v1/checkout',
      kind: 'do_then_error',
      status: 500,
    });
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.deepEqual(await harness.books(consumer), ONCE_25);
  });

  async function report(
    topUp: TopUp,
    eventId: string,
    type = 'checkout.session.completed',
  ): Promise<void> {
    const payload = JSON.stringify({
      id: `${eventId}_${topUp.id}`,
      object: 'event',
      type,
      data: { object: { id: topUp.sessionId, metadata: { top_up_id: wireId('topUp', topUp.id) } } },
    });
    const secret = harness.webhooks.webhookSecrets[0]!;
    const signature = harness.stripe.webhooks.generateTestHeaderString({ payload, secret });
    const result = await recordWebhook(harness.webhooks, Buffer.from(payload), signature);
    assert.deepEqual(result, { kind: 'stored' });
  }

  async function setColumn(topUp: TopUp, assignment: ReturnType<typeof sql.fragment>) {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set ${assignment} where id = ${topUp.id}
    `);
  }
});

describe('a checkout with its own expiry', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ CHECKOUT_MINUTES: '30' });
    await harness.startWorker();
  });
  after(async () => {
    await harness?.close();
  });

  it('closes at its expiry, and requests the same expiry again after a lost answer', async () => {
    const consumer = await harness.newConsumer();
    const lost = { method: 'POST', path: '/v1/checkout', kind: 'do_then_drop' };
    await harness.control('faults', lost);
    const topUp = await harness.checkout(consumer, 25);
    const { data } = await harness.stripe.checkout.sessions.list();
    assert.deepEqual(
      data.map(({ id }) => id),
      [topUp.sessionId],
    );
    const { expires_at: expiresAt, created } = data[0]!;
    assert.equal(new Date(expiresAt * 1_000).toISOString(), topUp.sessionExpiresAt);
    assert.ok(expiresAt - created >= 30 * 60 && expiresAt - created <= 36 * 60);
  });
});
