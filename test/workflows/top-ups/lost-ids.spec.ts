/**
 * A database that was restored has rows of top-ups whose session or payment intent was made after the restored
 * moment. What was paid is credited and nothing is taken twice, although Stripe has forgotten the idempotency keys.
 */
import assert from 'node:assert/strict';
import { sql } from '../../../src/store/database.ts';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import { recordProcessorCustomer } from '../../../src/store/top-ups/processor-customers.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { claimTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { asMicros } from '../../../src/domain/money.ts';
import * as calls from '../../../src/stripe/calls.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { control } from '../../support/payments.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const AMOUNT = asMicros(25_000_000);
const ONCE_25 = { credited: 25_000_000, movements: 1, lots: 1, lotsMicros: 25_000_000 };
const NOTHING = { credited: 0, movements: 0, lots: 0, lotsMicros: 0 };

describe('a top-up whose row lost the ids of its payment', () => {
  let harness: TopUpHarness;
  let consumer: Consumer;
  let customerId: string;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    await harness.startWorker();
    await harness.control('webhooks', { mode: 'drop' });
  });
  beforeEach(async () => {
    consumer = await harness.newConsumer();
    await changeConsent(harness.database, consumer.consumerId, {
      ceilingMicros: asMicros(1_000_000_000),
      givenBy: 'operator',
    });
    customerId = await calls.createCustomer(harness.stripe, consumer.accountId);
    await recordProcessorCustomer(harness.database, consumer.accountId, customerId);
  });
  after(() => harness?.close());

  /** The row records nothing of what its workflow did next: only Stripe knows. */
  async function takenUp(method: TopUp['method'], byLink = false): Promise<TopUp> {
    assert.ok(method === 'checkout' || method === 'direct');
    const admitted = await admitTopUp(harness.database, {
      ...consumer,
      method,
      byLink,
      amountMicros: AMOUNT,
    });
    assert.ok(admitted.kind === 'admitted', admitted.kind);
    const topUp = await claimTopUp(harness.database, admitted.topUp.id);
    assert.ok(topUp);
    return topUp;
  }

  async function directlyPaid(): Promise<TopUp> {
    const topUp = await takenUp('direct');
    const intent = await calls.createIntent(harness.stripe, topUp, customerId);
    const card = await calls.saveTestCard(harness.stripe, consumer.accountId, customerId);
    await calls.confirmIntent(harness.stripe, intent.id, card);
    return topUp;
  }

  async function openedCheckout(byLink = false) {
    const topUp = await takenUp('checkout', byLink);
    const { baseUrl } = harness.config;
    const customer = byLink ? null : customerId;
    const session = await calls.createSession(harness.stripe, topUp, customer, baseUrl);
    return { topUp, session };
  }

  async function timePasses(topUp: TopUp, minutes = 2 * 24 * 60): Promise<void> {
    await control(harness.simulator, 'idempotency-keys', undefined, 'DELETE');
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - ${minutes}::int8 * interval '1 minute'
      where id = ${topUp.id}
    `);
  }

  const reconcile = () => harness.reconcile();
  const asked = (topUp: TopUp) => reportPayment(harness.temporal, topUp);

  async function isPaidOnce(topUp: TopUp): Promise<void> {
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await harness.paymentsOf(topUp)).length, 1);
    assert.deepEqual(await harness.books(consumer), ONCE_25);
    const differences = await listDifferences(harness.database);
    assert.deepEqual(
      differences.filter(({ topUpId }) => topUpId === topUp.id),
      [],
    );
  }

  for (const [how, act] of [
    ['reconciliation', reconcile],
    ['its workflow alone', asked],
  ] as const) {
    it(`is credited for the card that was charged, by ${how}`, async () => {
      const topUp = await directlyPaid();
      await timePasses(topUp);
      await act(topUp);
      await isPaidOnce(topUp);
    });

    it(`is credited for the checkout that was paid, by ${how}`, async () => {
      const { topUp, session } = await openedCheckout();
      await harness.pay(session.url);
      await timePasses(topUp);
      await act(topUp);
      await isPaidOnce(topUp);
    });
  }

  it('is credited for a checkout that was paid, when the account has lost its customer too', async () => {
    const { topUp, session } = await openedCheckout();
    await harness.pay(session.url);
    await timePasses(topUp);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.accounts set processor_customer_id = null where id = ${consumer.accountId}
    `);
    await asked(topUp);
    await isPaidOnce(topUp);
  });

  it('is credited for the checkout of a top-up link, which has no customer', async () => {
    const { topUp, session } = await openedCheckout(true);
    await harness.pay(session.url);
    await timePasses(topUp, 20);
    await asked(topUp);
    await isPaidOnce(topUp);
  });

  it('expires when it came from a top-up link and was never opened', async () => {
    const topUp = await takenUp('checkout', true);
    await timePasses(topUp);
    await asked(topUp);
    await harness.statusBecomes(topUp, 'expired');
    assert.equal((await harness.topUp(topUp.id)).sessionId, null);
  });

  it('keeps the checkout that can still be paid', async () => {
    const { topUp, session } = await openedCheckout();
    await timePasses(topUp);
    await asked(topUp);
    await harness.workflow(topUp.id).executeUpdate('retry');
    assert.equal((await harness.topUp(topUp.id)).sessionId, session.id);
    await harness.pay(session.url);
    await asked(topUp);
    await isPaidOnce(topUp);
  });

  it('expires with the checkout that nobody paid', async () => {
    const { topUp, session } = await openedCheckout();
    await timePasses(topUp);
    await harness.control(`sessions/${session.id}/expire-now`);
    await asked(topUp);
    await harness.statusBecomes(topUp, 'expired');
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('takes nothing by the payment intent that was never confirmed', async () => {
    const topUp = await takenUp('direct');
    const intent = await calls.createIntent(harness.stripe, topUp, customerId);
    await calls.saveTestCard(harness.stripe, consumer.accountId, customerId);
    await timePasses(topUp);
    await asked(topUp);
    await harness.statusBecomes(topUp, 'failed');
    assert.equal((await calls.readIntent(harness.stripe, intent.id)).status, 'canceled');
    assert.deepEqual(await harness.paymentsOf(topUp), []);
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('closes the checkout that can still be paid, when an operator cancels it', async () => {
    const { topUp, session } = await openedCheckout();
    await timePasses(topUp);
    await asked(topUp);
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await harness.statusBecomes(topUp, 'expired');
    const closed = await harness.stripe.checkout.sessions.retrieve(session.id);
    assert.equal(closed.status, 'expired');
  });

  it('is credited for an earlier checkout, and the one that was opened since is closed', async () => {
    const { topUp, session } = await openedCheckout();
    await harness.pay(session.url);
    const { baseUrl } = harness.config;
    const payable = { ...topUp, sessionExpiresAt: inAnHour() };
    const second = await calls.createSession(harness.stripe, payable, customerId, baseUrl);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set session_id = ${second.id}, session_url = ${second.url}
      where id = ${topUp.id}
    `);
    await reconcile();
    await isPaidOnce(topUp);
    const closed = await harness.stripe.checkout.sessions.retrieve(second.id);
    assert.equal(closed.status, 'expired');
  });
});

function inAnHour(): string {
  return new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 3_600_000).toISOString();
}
