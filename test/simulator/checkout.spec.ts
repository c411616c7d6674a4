/** The hosted page, from an open session to paid, declined or expired. */
import assert from 'node:assert/strict';
import type Stripe from 'stripe';
import { openSimulator, type SimulatorProcess, type WebhookReceiver } from './simulator-process.ts';

function buying(unit_amount: number, name = 'Balance') {
  const price_data = { currency: 'usd', unit_amount, product_data: { name } };
  return { line_items: [{ price_data, quantity: 1 }] };
}

function pay(url: string, fields: Record<string, string>, accept = '*/*') {
  const body = new URLSearchParams(fields);
  return fetch(url, { method: 'POST', body, headers: { accept }, redirect: 'manual' });
}

describe('the simulated checkout', () => {
  let receiver: WebhookReceiver;
  let simulator: SimulatorProcess;
  let stripe: Stripe;
  let close: () => Promise<void>;

  before(async () => {
    ({ receiver, simulator, stripe, close } = await openSimulator());
  });
  after(() => close());

  async function open(more: Partial<Stripe.Checkout.SessionCreateParams> = {}) {
    const session = await stripe.checkout.sessions.create({
      mode: 'payment',
      ...buying(2_500, 'Balance'),
      success_url: 'http://127.0.0.1:9/done?session={CHECKOUT_SESSION_ID}',
      cancel_url: 'http://127.0.0.1:9/cancelled',
      ...more,
    });
    return { ...session, url: String(session.url) };
  }

  it('opens a session with the given parameters, and returns it again', async () => {
    const session = await open({ client_reference_id: 'tu_1', metadata: { topUp: 'tu_1' } });
    assert.match(session.id, /^cs_test_/);
    assert.match(session.url, /^http:\/\/127\.0\.0\.1:\d+\/pay\/cs_test_/);
    const again = await stripe.checkout.sessions.retrieve(session.id);
    assert.equal(again.status, 'open');
    assert.equal(again.payment_status, 'unpaid');
    assert.equal(again.amount_total, 2_500);
    assert.equal(again.client_reference_id, 'tu_1');
    assert.deepEqual(again.metadata, { topUp: 'tu_1' });
    assert.equal(again.expires_at - again.created, 24 * 60 * 60);
  });

  it('takes the money when the form is submitted, and sends the webhook', async () => {
    const session = await open({ payment_intent_data: { metadata: { topUp: 'tu_2' } } });
    const response = await pay(session.url, { card: '4242 4242 4242 4242' });
    assert.equal(response.status, 200);
    const paid = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['payment_intent.latest_charge.balance_transaction'],
    });
    assert.equal(paid.status, 'complete');
    assert.equal(paid.payment_status, 'paid');
    assert.equal(paid.url, null);
    const intent = paid.payment_intent as Stripe.PaymentIntent;
    assert.equal(intent.status, 'succeeded');
    assert.equal(intent.amount_received, 2_500);
    assert.deepEqual(intent.metadata, { topUp: 'tu_2' });
    const charge = intent.latest_charge as Stripe.Charge;
    assert.equal(charge.status, 'succeeded');
    const transaction = charge.balance_transaction as Stripe.BalanceTransaction;
    assert.equal(transaction.amount, 2_500);
    assert.equal(transaction.net, 2_500 - 103);

    const event = await receiver.event('checkout.session.completed', session.id);
    assert.equal(event.api_version, stripe.getApiField('version'));
    assert.deepEqual(event.data.object, await stripe.checkout.sessions.retrieve(session.id));
    assert.equal((await stripe.events.retrieve(event.id)).id, event.id);
    await receiver.event('payment_intent.succeeded', intent.id);
    await receiver.event('charge.succeeded', charge.id);
  });

  it('finds the session of a payment', async () => {
    const session = await open();
    await pay(session.url, { card: '4242424242424242' });
    const { payment_intent } = await stripe.checkout.sessions.retrieve(session.id);
    const found = await stripe.checkout.sessions.list({ payment_intent: payment_intent as string });
    assert.deepEqual(
      found.data.map(({ id }) => id),
      [session.id],
    );
  });

  it('redirects a browser to the success URL', async () => {
    const session = await open();
    const response = await pay(session.url, { card: '4242424242424242' }, 'text/html,*/*;q=0.8');
    assert.equal(response.status, 303);
    const location = response.headers.get('location');
    assert.equal(location, `http://127.0.0.1:9/done?session=${session.id}`);
  });

  it('takes the money once when the form is submitted twice', async () => {
    const session = await open();
    const both = [pay(session.url, { card: '4242424242424242' })];
    both.push(pay(session.url, { card: '4242424242424242' }));
    for (const response of await Promise.all(both)) assert.equal(response.status, 200);
    const { payments } = await simulator.control<{ payments: { checkout_session: string }[] }>(
      'GET',
      'payments',
    );
    assert.equal(payments.filter((each) => each.checkout_session === session.id).length, 1);
  });

  it('shows the amount and the product, and escapes its name', async () => {
    const session = await open(buying(123_456, '<b>x</b>'));
    const response = await fetch(session.url);
    const html = await response.text();
    assert.match(response.headers.get('content-type') ?? '', /text\/html/);
    assert.match(html, /\$1,234\.56/);
    assert.match(html, /&#60;b&#62;x/);
    assert.doesNotMatch(html, /<b>x/);
  });

  it('shows a paid session as paid', async () => {
    const session = await open();
    await pay(session.url, { card: '4242424242424242' });
    const html = await (await fetch(session.url)).text();
    assert.match(html, /Paid\. Thank you\./);
    assert.doesNotMatch(html, /<form/);
  });

  it('answers a declined card with 402, and then accepts another', async () => {
    const session = await open();
    const declined = await pay(session.url, { card: '4000000000000002' }, 'text/html');
    assert.equal(declined.status, 402);
    assert.match(await declined.text(), /Your card was declined\./);
    const between = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['payment_intent'],
    });
    assert.equal(between.status, 'open');
    const intent = between.payment_intent as Stripe.PaymentIntent;
    assert.equal(intent.status, 'requires_payment_method');
    assert.equal(intent.last_payment_error?.decline_code, 'generic_decline');
    await receiver.event('payment_intent.payment_failed', intent.id);

    assert.equal((await pay(session.url, { card: '4242424242424242' })).status, 200);
    const after = await stripe.checkout.sessions.retrieve(session.id);
    assert.equal(after.payment_status, 'paid');
    assert.equal(after.payment_intent, intent.id);
  });

  it('refuses anything but a test card, and stores nothing of it', async () => {
    const session = await open();
    for (const card of ['4111111111111111', '1234', '']) {
      const response = await pay(session.url, { card });
      assert.equal(response.status, 402);
    }
    assert.equal((await stripe.checkout.sessions.retrieve(session.id)).payment_intent, null);
  });

  it('saves the card on the customer when asked to', async () => {
    const customer = await stripe.customers.create({ email: 'ada@example.com' });
    const session = await open({
      customer: customer.id,
      payment_intent_data: { setup_future_usage: 'off_session' },
    });
    await pay(session.url, { card: '4242424242424242' });
    const saved = await stripe.customers.listPaymentMethods(customer.id, { type: 'card' });
    assert.equal(saved.data[0]?.card?.last4, '4242');
    const direct = await stripe.paymentIntents.create({
      amount: 1_000,
      currency: 'usd',
      customer: customer.id,
      payment_method: saved.data[0]?.id,
      off_session: true,
      confirm: true,
    });
    assert.equal(direct.status, 'succeeded');
  });

  it('offers a card that its owner saved on later pages of the customer, and nowhere else', async () => {
    const { id: customer } = await stripe.customers.create({});
    const saving = { saved_payment_method_options: { payment_method_save: 'enabled' } } as const;
    const first = await open({ customer, ...saving });
    await pay(first.url, { card: '4242424242424242', save: 'true' });
    const [card] = (await stripe.customers.listPaymentMethods(customer)).data;
    assert.ok(card);
    const second = await open({ customer });
    assert.match(await (await fetch(second.url)).text(), /Pay with visa ending in 4242/);
    const guest = await open();
    assert.doesNotMatch(await (await fetch(guest.url)).text(), /ending in/);
    assert.equal((await pay(guest.url, { saved: card.id })).status, 402);
    assert.equal((await pay(second.url, { saved: card.id })).status, 200);
    const expand = ['payment_intent'];
    const { payment_intent } = await stripe.checkout.sessions.retrieve(second.id, { expand });
    assert.equal((payment_intent as Stripe.PaymentIntent).payment_method, card.id);
  });

  it('offers the card that was saved last first', async () => {
    const { id: customer } = await stripe.customers.create({});
    const saving = { saved_payment_method_options: { payment_method_save: 'enabled' } } as const;
    for (const card of ['4242424242424242', '5555555555554444']) {
      const { url } = await open({ customer, ...saving });
      await pay(url, { card, save: 'true' });
    }
    const { url } = await open({ customer });
    assert.match(await (await fetch(url)).text(), /ending in 4444.*ending in 4242/s);
  });

  it('creates a customer for the invoice when none was given, and can update no other', async () => {
    const invoiced = { invoice_creation: { enabled: true }, automatic_tax: { enabled: true } };
    const session = await open(invoiced);
    await pay(session.url, { card: '4242424242424242', country: 'US', state: 'NY' });
    const paid = await stripe.checkout.sessions.retrieve(session.id, { expand: ['customer'] });
    assert.equal((paid.customer as Stripe.Customer).address?.state, 'NY');
    const refused = open({ ...invoiced, customer_update: { address: 'auto' } });
    await assert.rejects(refused, { param: 'customer_update' });
  });

  it('creates a customer when none was given and one is requested', async () => {
    const session = await open({ customer_creation: 'always', customer_email: 'b@example.com' });
    await pay(session.url, { card: '4242424242424242' });
    const { customer } = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['customer'],
    });
    assert.equal((customer as Stripe.Customer).email, 'b@example.com');
  });

  for (const outcome of ['succeeded', 'failed'] as const) {
    it(`completes unpaid with a bank account, and reports when the debit ${outcome}`, async () => {
      const session = await open();
      assert.equal((await pay(session.url, { card: '000123456789' })).status, 200);
      const completed = await receiver.event('checkout.session.completed', session.id);
      const snapshot = completed.data.object as Stripe.Checkout.Session;
      assert.equal(snapshot.payment_status, 'unpaid');
      await simulator.control('POST', `async/${session.id}`, { outcome });
      await receiver.event(`checkout.session.async_payment_${outcome}`, session.id);
      const settled = await stripe.checkout.sessions.retrieve(session.id, {
        expand: ['payment_intent'],
      });
      assert.equal(settled.payment_status, outcome === 'succeeded' ? 'paid' : 'unpaid');
      assert.equal(
        (settled.payment_intent as Stripe.PaymentIntent).status,
        outcome === 'succeeded' ? 'succeeded' : 'requires_payment_method',
      );
    });
  }

  it('expires on request, and takes no money afterwards', async () => {
    const session = await open();
    const expired = await stripe.checkout.sessions.expire(session.id);
    assert.equal(expired.status, 'expired');
    await receiver.event('checkout.session.expired', session.id);
    assert.equal((await pay(session.url, { card: '4242424242424242' })).status, 410);
    assert.match(await (await fetch(session.url)).text(), /expired/);
    await assert.rejects(stripe.checkout.sessions.expire(session.id), {
      type: 'StripeInvalidRequestError',
      statusCode: 400,
    });
  });

  it('expires a declined session with its payment intent', async () => {
    const session = await open();
    await pay(session.url, { card: '4000000000000002' });
    await simulator.control('POST', `sessions/${session.id}/expire-now`);
    const expired = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['payment_intent'],
    });
    assert.equal(expired.status, 'expired');
    assert.equal((expired.payment_intent as Stripe.PaymentIntent).status, 'canceled');
  });

  it('refuses to expire a paid session', async () => {
    const session = await open();
    await pay(session.url, { card: '4242424242424242' });
    await assert.rejects(stripe.checkout.sessions.expire(session.id), /status of complete/);
  });

  it('keeps to the limits of expires_at and of the amount', async () => {
    const now = Math.floor(Date.now() / 1_000);
    await assert.rejects(open({ expires_at: now + 60 }), { param: 'expires_at' });
    await assert.rejects(open({ expires_at: now + 90_000 }), { param: 'expires_at' });
    await assert.rejects(open(buying(49)), { code: 'amount_too_small' });
    await assert.rejects(open(buying(100_000_000)), { code: 'amount_too_large' });
    assert.equal((await open(buying(99_999_999))).amount_total, 99_999_999);
  });

  it('has no page for an unknown session', async () => {
    const url = `http://127.0.0.1:${simulator.port}/pay/cs_test_none`;
    assert.equal((await fetch(url)).status, 404);
    assert.equal((await pay(url, { card: '4242424242424242' })).status, 404);
  });
});
