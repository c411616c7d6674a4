/** Checkout sessions. Their page is the only thing here that the API cannot do: see `pay` of the target. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import type { Stripe } from 'stripe';
import { MINUTE_MS } from '../../../src/domain/durations.ts';
import { wireId } from '../../../src/domain/ids.ts';
import * as calls from '../../../src/stripe/calls.ts';
import { findCard, listCards, openCardSetup } from '../../../src/stripe/cards.ts';
import { idOf, verdictOfIntent, verdictOfSession } from '../../../src/stripe/verdict.ts';
import { CLOCK_SKEW_SECONDS, eventOf, type Target } from '../target.ts';
import { CENTS, errorOf, newOrder } from './order.ts';

const BASE_URL = 'https://example.com';

function expiringIn(minutes: number) {
  const nowMs = Math.ceil(Date.now() / 1_000) * 1_000;
  return newOrder({ sessionExpiresAt: new Date(nowMs + minutes * MINUTE_MS).toISOString() });
}

export function describeSessions(get: () => Target): void {
  async function open(order = newOrder()) {
    const { stripe } = get();
    const customer = await calls.createCustomer(stripe, randomUUIDv7());
    const session = await calls.createSession(stripe, order, customer, BASE_URL);
    return { order, customer, ...session };
  }

  /** A title that says so where a person has to pay, and nobody is there. */
  function itPays(title: string, run: (pay: NonNullable<Target['pay']>) => Promise<void>): void {
    it(`${title} (on the hosted page)`, async function () {
      const { pay } = get();
      if (!pay) return this.skip();
      this.timeout(10 * MINUTE_MS);
      await run(pay);
    });
  }

  describe('checkout sessions', () => {
    it('are open and unpaid at first, and are listed with their customer', async () => {
      const { stripe, startedAt } = get();
      const { order, customer, id, url } = await open();
      assert.match(id, /^cs_test_/);
      assert.match(url, /^https?:\/\//);
      const session = await calls.readSession(stripe, id);
      assert.equal(session.status, 'open');
      assert.equal(session.payment_status, 'unpaid');
      assert.equal(session.amount_total, CENTS);
      assert.equal(session.adaptive_pricing?.enabled, false);
      assert.equal(session.client_reference_id, wireId('topUp', order.id));
      assert.deepEqual(verdictOfSession(session, order), { kind: 'open' });
      const created = { gte: startedAt - CLOCK_SKEW_SECONDS };
      const { data } = await stripe.checkout.sessions.list({ customer, created, limit: 100 });
      assert.deepEqual(
        data.map((each) => [each.id, each.metadata?.['top_up_id']]),
        [[id, wireId('topUp', order.id)]],
      );
    });

    it('show nothing of an account to the holder of a top-up link', async () => {
      const { stripe, startedAt } = get();
      const order = newOrder();
      const { id } = await calls.createSession(stripe, order, null, BASE_URL);
      const session = await calls.readSession(stripe, id);
      assert.equal(session.customer, null);
      assert.equal(session.customer_creation, 'if_required');
      assert.notEqual(session.saved_payment_method_options?.payment_method_save, 'enabled');
      const created = {
        gte: startedAt - CLOCK_SKEW_SECONDS,
        lte: session.created + CLOCK_SKEW_SECONDS,
      };
      const { data } = await stripe.checkout.sessions.list({ created, limit: 100 });
      const listed = data.find((each) => each.id === id);
      assert.equal(listed?.metadata?.['top_up_id'], wireId('topUp', order.id));
      assert.equal(listed.metadata['account_id'], wireId('account', order.accountId));
    });

    itPays('of a top-up link save no card', async (pay) => {
      const { stripe } = get();
      const order = newOrder();
      const { id, url } = await calls.createSession(stripe, order, null, BASE_URL);
      await pay(url, '4242424242424242');
      const session = await calls.readSession(stripe, id);
      assert.equal(verdictOfSession(session, order).kind, 'paid');
      const intent = session.payment_intent as Stripe.PaymentIntent;
      assert.deepEqual([session.customer, intent.customer], [null, null]);
      assert.equal(intent.metadata['account_id'], wireId('account', order.accountId));
      const card = await stripe.paymentMethods.retrieve(idOf(intent.payment_method) ?? '');
      assert.equal(card.customer, null);
    });

    it('expire when told to, once', async () => {
      const { stripe } = get();
      const { order, id } = await open();
      await calls.expireSession(stripe, id);
      const session = await calls.readSession(stripe, id);
      assert.equal(session.status, 'expired');
      assert.equal(session.url, null);
      assert.deepEqual(verdictOfSession(session, order), { kind: 'expired' });
      const error = await errorOf(stripe.checkout.sessions.expire(id));
      assert.equal(error.type, 'StripeInvalidRequestError');
      await calls.expireSession(stripe, id);
      await eventOf(get(), 'checkout.session.expired', id);
    });

    it('take an expiry of 30 minutes to 24 hours, and no other', async () => {
      const { stripe } = get();
      const order = expiringIn(31);
      const { id } = await open(order);
      const { expires_at } = await calls.readSession(stripe, id);
      assert.equal(expires_at * 1_000, Date.parse(order.sessionExpiresAt ?? ''));
      for (const minutes of [20, 25 * 60]) {
        const error = await errorOf(open(expiringIn(minutes)));
        assert.equal(error.statusCode, 400);
        assert.equal(error.param, 'expires_at');
      }
    });

    it('are not made for less than fifty cents', async () => {
      const cents = { ...newOrder(), amountMicros: 490_000 as never };
      assert.equal((await errorOf(open(cents))).code, 'amount_too_small');
    });

    itPays('are paid with a card, in full and for their top-up', async (pay) => {
      const { stripe } = get();
      const { order, id, url } = await open();
      await pay(url, '4242424242424242');
      const session = await calls.readSession(stripe, id);
      assert.equal(session.status, 'complete');
      const verdict = verdictOfSession(session, order);
      assert.equal(verdict.kind, 'paid');
      const intent = session.payment_intent as Stripe.PaymentIntent;
      assert.equal(intent.metadata['top_up_id'], wireId('topUp', order.id));
      assert.equal(intent.description, calls.DESCRIPTION);
      const event = await eventOf(get(), 'checkout.session.completed', id);
      assert.equal((event.data.object as Stripe.Checkout.Session).payment_status, 'paid');
      const { data } = await stripe.checkout.sessions.list({ payment_intent: intent.id });
      assert.equal(data[0]?.id, id);
      await calls.expireSession(stripe, id);
      assert.equal((await calls.readSession(stripe, id)).status, 'complete');
    });

    itPays(
      'set the card up for top-ups without its owner, when the owner wants that',
      async (pay) => {
        const { stripe } = get();
        const { id, customer, url } = await open(newOrder({ savesCard: true }));
        await pay(url, '4000002500003155');
        const intent = (await calls.readSession(stripe, id)).payment_intent as Stripe.PaymentIntent;
        const [card] = await listCards(stripe, customer);
        assert.ok(card);
        assert.equal(card.id, intent.payment_method);
        const order = newOrder();
        const next = await calls.createIntent(stripe, order, customer);
        const paid = await calls.confirmIntent(stripe, next.id, card.id);
        assert.equal(verdictOfIntent(paid, order).kind, 'paid');
      },
    );

    it('that only save a card take no money', async () => {
      const { stripe } = get();
      const customer = await calls.createCustomer(stripe, randomUUIDv7());
      const url = await openCardSetup(stripe, customer, { returnUrl: BASE_URL, terms: 'Terms.' });
      assert.match(url, /^https?:\/\//);
      const { data } = await stripe.checkout.sessions.list({ customer });
      assert.deepEqual(
        data.map(({ mode, amount_total, payment_status }) => [mode, amount_total, payment_status]),
        [['setup', null, 'no_payment_required']],
      );
    });

    itPays('that only save a card attach it to the customer', async (pay) => {
      const { stripe } = get();
      const customer = await calls.createCustomer(stripe, randomUUIDv7());
      const url = await openCardSetup(stripe, customer, { returnUrl: BASE_URL, terms: 'Terms.' });
      await pay(url, '4000002500003155');
      const [session] = (await stripe.checkout.sessions.list({ customer })).data;
      assert.equal(session?.status, 'complete');
      const [card] = await listCards(stripe, customer);
      assert.ok(card);
      assert.equal(await findCard(stripe, customer, card.id), 'saved');
      const attached = await eventOf(get(), 'payment_method.attached', card.id);
      assert.equal((attached.data.object as Stripe.PaymentMethod).customer, customer);
      await eventOf(get(), 'checkout.session.completed', session.id);
    });

    itPays('are complete and unpaid until a bank debit has succeeded', async (pay) => {
      const { stripe } = get();
      const { order, id, url } = await open();
      await pay(url, '000123456789');
      const completed = await eventOf(get(), 'checkout.session.completed', id);
      const snapshot = completed.data.object as Stripe.Checkout.Session;
      assert.equal(snapshot.payment_status, 'unpaid');
      await eventOf(get(), 'checkout.session.async_payment_succeeded', id);
      assert.equal(verdictOfSession(await calls.readSession(stripe, id), order).kind, 'paid');
    });

    itPays('stay unpaid when the bank debit fails', async (pay) => {
      const { stripe } = get();
      const { order, id, url } = await open();
      await pay(url, '000111111113');
      await eventOf(get(), 'checkout.session.async_payment_failed', id);
      const session = await calls.readSession(stripe, id);
      const verdict = verdictOfSession(session, order);
      assert.equal(verdict.kind === 'failed' && verdict.failure.code, 'payment_failed');
      const intentId = idOf(session.payment_intent) ?? '';
      const error = await errorOf(stripe.paymentIntents.cancel(intentId));
      assert.equal(error.type, 'StripeInvalidRequestError');
    });
  });
}
