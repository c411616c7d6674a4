/** Customers, saved cards, payment intents, refunds and disputes, through the stripe package. */
import assert from 'node:assert/strict';
import { Stripe } from 'stripe';
import { openSimulator, type SimulatorProcess, type WebhookReceiver } from './simulator-process.ts';

async function cardErrorOf(call: Promise<unknown>): Promise<Stripe.errors.StripeCardError> {
  const error = await call.then(
    () => assert.fail('the card was not declined'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Stripe.errors.StripeCardError, String(error));
  return error;
}

/** The id in a field that may hold an object instead. */
function idOf(reference: string | { readonly id: string } | null): string {
  assert.equal(typeof reference, 'string');
  return reference as string;
}

describe('simulated payments', () => {
  let receiver: WebhookReceiver;
  let simulator: SimulatorProcess;
  let stripe: Stripe;
  let close: () => Promise<void>;

  before(async () => {
    ({ receiver, simulator, stripe, close } = await openSimulator());
  });
  after(() => close());

  async function customerWith(testCard: string) {
    const customer = await stripe.customers.create({ email: 'ada@example.com' });
    const card = await stripe.paymentMethods.attach(testCard, { customer: customer.id });
    return { customer: customer.id, payment_method: card.id };
  }

  function charge(
    card: { customer: string; payment_method: string },
    more: Partial<Stripe.PaymentIntentCreateParams> = {},
  ) {
    return stripe.paymentIntents.create({
      amount: 2_000,
      currency: 'usd',
      off_session: true,
      confirm: true,
      ...card,
      ...more,
    });
  }

  it('keeps the given fields of a customer', async () => {
    const created = await stripe.customers.create({ name: 'Ada', metadata: { a: '1', b: '2' } });
    assert.match(created.id, /^cus_/);
    await stripe.customers.update(created.id, { email: 'ada@example.com', metadata: { a: '' } });
    const customer = (await stripe.customers.retrieve(created.id)) as Stripe.Customer;
    assert.equal(customer.name, 'Ada');
    assert.equal(customer.email, 'ada@example.com');
    assert.deepEqual(customer.metadata, { b: '2' });
  });

  it('makes a payment method of a test card, and lists the newest first', async () => {
    const first = await customerWith('pm_card_visa');
    const { customer } = first;
    const second = await stripe.paymentMethods.attach('pm_card_mastercard', { customer });
    const { data } = await stripe.paymentMethods.list({ customer, type: 'card' });
    assert.deepEqual(
      data.map(({ id }) => id),
      [second.id, first.payment_method],
    );
    assert.equal(second.card?.brand, 'mastercard');
    assert.equal((await stripe.paymentMethods.retrieve(second.id)).customer, customer);
    await stripe.paymentMethods.detach(second.id);
    assert.equal((await stripe.customers.listPaymentMethods(customer)).data.length, 1);
  });

  it('takes money from a saved card', async () => {
    const card = await customerWith('pm_card_visa');
    const intent = await charge(card, { metadata: { topUp: 'tu_1' } });
    assert.equal(intent.status, 'succeeded');
    assert.equal(intent.amount_received, 2_000);
    await receiver.event('payment_intent.succeeded', intent.id);
    const { payments } = await simulator.control<{
      payments: { payment_intent: string; amount: number; metadata: unknown }[];
    }>('GET', 'payments');
    const payment = payments.find((each) => each.payment_intent === intent.id);
    assert.equal(payment?.amount, 2_000);
    assert.deepEqual(payment.metadata, { topUp: 'tu_1' });
  });

  it('takes the money only when an intent is confirmed', async () => {
    const card = await customerWith('pm_card_visa');
    const { payment_method, customer } = card;
    const intent = await stripe.paymentIntents.create({ amount: 500, currency: 'usd', customer });
    assert.equal(intent.status, 'requires_payment_method');
    const confirmed = await stripe.paymentIntents.confirm(intent.id, {
      payment_method,
      off_session: true,
    });
    assert.equal(confirmed.status, 'succeeded');
    await assert.rejects(stripe.paymentIntents.confirm(intent.id), {
      code: 'payment_intent_unexpected_state',
    });
  });

  it('takes nothing for an intent that was canceled', async () => {
    const { customer, payment_method } = await customerWith('pm_card_visa');
    const intent = await stripe.paymentIntents.create({ amount: 500, currency: 'usd', customer });
    assert.equal((await stripe.paymentIntents.cancel(intent.id)).status, 'canceled');
    await receiver.event('payment_intent.canceled', intent.id);
    await assert.rejects(stripe.paymentIntents.confirm(intent.id, { payment_method }), {
      code: 'payment_intent_unexpected_state',
    });
  });

  it('declines a saved card like its bank, and keeps the attempt', async () => {
    const card = await customerWith('pm_card_chargeCustomerFail');
    const error = await cardErrorOf(charge(card));
    assert.equal(error.statusCode, 402);
    assert.equal(error.code, 'card_declined');
    assert.equal(error.decline_code, 'generic_decline');
    const id = String(error.payment_intent?.id);
    const intent = await stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] });
    assert.equal(intent.status, 'requires_payment_method');
    assert.equal(intent.last_payment_error?.code, 'card_declined');
    assert.equal((intent.latest_charge as Stripe.Charge).status, 'failed');
    await receiver.event('payment_intent.payment_failed', id);
  });

  for (const [card, code, declineCode] of [
    ['pm_card_chargeDeclined', 'card_declined', 'generic_decline'],
    ['pm_card_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
    ['pm_card_chargeDeclinedExpiredCard', 'expired_card', 'expired_card'],
  ] as const) {
    it(`declines ${card} with ${declineCode}, when it pays and when it is saved`, async () => {
      const { id: customer } = await stripe.customers.create();
      const paying = await cardErrorOf(
        stripe.paymentIntents.create({
          amount: 500,
          currency: 'usd',
          payment_method: card,
          confirm: true,
        }),
      );
      assert.equal(paying.code, code);
      assert.equal(paying.decline_code, declineCode);
      const saving = await cardErrorOf(stripe.paymentMethods.attach(card, { customer }));
      assert.equal(saving.code, code);
      assert.equal((await stripe.customers.listPaymentMethods(customer)).data.length, 0);
    });
  }

  it('requires authentication when the owner of the card is absent', async () => {
    const card = await customerWith('pm_card_authenticationRequired');
    const error = await cardErrorOf(charge(card));
    assert.equal(error.code, 'authentication_required');
    assert.equal(error.payment_intent?.status, 'requires_payment_method');
  });

  it('accepts no card of another customer', async () => {
    const card = await customerWith('pm_card_visa');
    const { id: customer } = await stripe.customers.create();
    await assert.rejects(charge({ ...card, customer }), { param: 'payment_method' });
    await assert.rejects(stripe.paymentMethods.attach(card.payment_method, { customer }), {
      statusCode: 400,
    });
  });

  it('refunds up to the payment, and no more', async () => {
    const intent = await charge(await customerWith('pm_card_visa'));
    const first = await stripe.refunds.create({
      payment_intent: intent.id,
      amount: 500,
      metadata: { topUp: 'tu_9' },
    });
    assert.equal(first.status, 'succeeded');
    await receiver.event('refund.created', first.id);
    await receiver.event('charge.refunded', idOf(first.charge));
    await assert.rejects(stripe.refunds.create({ payment_intent: intent.id, amount: 1_501 }), {
      param: 'amount',
    });
    const rest = await stripe.refunds.create({ payment_intent: intent.id });
    assert.equal(rest.amount, 1_500);
    await assert.rejects(stripe.refunds.create({ payment_intent: intent.id }), {
      code: 'charge_already_refunded',
    });
    const list = await stripe.refunds.list({ payment_intent: intent.id });
    assert.deepEqual(
      list.data.map(({ id }) => id),
      [rest.id, first.id],
    );
    assert.deepEqual((await stripe.refunds.retrieve(first.id)).metadata, { topUp: 'tu_9' });
  });

  it('returns the money to us when a refund fails', async () => {
    const intent = await charge(await customerWith('pm_card_visa'));
    const refund = await stripe.refunds.create({ payment_intent: intent.id });
    await simulator.control('POST', `refunds/${refund.id}/fail`);
    await receiver.event('refund.failed', refund.id);
    const failed = await stripe.refunds.retrieve(refund.id);
    assert.equal(failed.status, 'failed');
    const charged = await stripe.charges.retrieve(idOf(refund.charge));
    assert.equal(charged.amount_refunded, 0);
    const movements = await stripe.balanceTransactions.list({ source: refund.id });
    assert.deepEqual(
      movements.data.map(({ type, amount }) => [type, amount]),
      [
        ['refund_failure', 2_000],
        ['refund', -2_000],
      ],
    );
  });

  for (const status of ['won', 'lost'] as const) {
    it(`opens a dispute, takes the money and a fee, and reports when it is ${status}`, async () => {
      const intent = await charge(await customerWith('pm_card_visa'));
      const { id } = await simulator.control<Stripe.Dispute>('POST', 'disputes', {
        payment_intent: intent.id,
      });
      await receiver.event('charge.dispute.created', id);
      await receiver.event('charge.dispute.funds_withdrawn', id);
      const [dispute] = (await stripe.disputes.list({ payment_intent: intent.id })).data;
      assert.equal(dispute?.status, 'needs_response');
      assert.equal(dispute.amount, 2_000);
      await assert.rejects(stripe.refunds.create({ payment_intent: intent.id }), {
        code: 'charge_disputed',
      });
      await simulator.control('POST', `disputes/${id}/close`, { status });
      await receiver.event('charge.dispute.closed', id);
      const closed = await stripe.disputes.retrieve(id);
      assert.equal(closed.status, status);
      const kept = closed.balance_transactions.reduce((sum, { net }) => sum + net, 0);
      assert.equal(kept, status === 'won' ? -1_500 : -3_500);
    });
  }

  it('lists every balance transaction, page by page, within a time span', async () => {
    const before = await stripe.balanceTransactions.list({ limit: 1 });
    const card = await customerWith('pm_card_visa');
    const intents = [];
    for (let index = 0; index < 5; index += 1) intents.push(await charge(card));
    const created = { gte: intents[0]?.created ?? 0 };
    const found = [];
    for await (const each of stripe.balanceTransactions.list({ created, limit: 2 })) {
      if (each.id === before.data[0]?.id) break;
      found.push(each.source);
    }
    assert.deepEqual(found, intents.map(({ latest_charge }) => latest_charge).toReversed());
    const later = await stripe.balanceTransactions.list({ created: { gt: Date.now() } });
    assert.deepEqual(later.data, []);
  });
});
