/** Payments from a saved card while its owner is away: success, declines, cancellation. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { wireId } from '../../../src/domain/ids.ts';
import * as calls from '../../../src/stripe/calls.ts';
import { authenticate } from '../../../src/stripe/authentication.ts';
import { isUnconfirmed, needsPayer, verdictOfIntent } from '../../../src/stripe/verdict.ts';
import { CLOCK_SKEW_SECONDS, eventOf, type Target } from '../target.ts';
import { CENTS, customerWith, errorOf, newOrder, payWith } from './order.ts';

/** Test card, code, decline code. */
const DECLINES = [
  ['pm_card_visa_chargeDeclined', 'card_declined', 'generic_decline'],
  ['pm_card_visa_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
  ['pm_card_visa_chargeDeclinedLostCard', 'card_declined', 'lost_card'],
  ['pm_card_visa_chargeDeclinedStolenCard', 'card_declined', 'stolen_card'],
  ['pm_card_chargeDeclinedExpiredCard', 'expired_card', undefined],
  ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc', undefined],
  ['pm_card_chargeDeclinedProcessingError', 'processing_error', undefined],
] as const;

export function describePayments(get: () => Target): void {
  describe('payments', () => {
    it('take no money before they are confirmed, and the full amount then', async () => {
      const { stripe, startedAt } = get();
      const { customer, card } = await customerWith(get(), 'pm_card_visa');
      const order = newOrder();
      const { id } = await calls.createIntent(stripe, order, customer);
      const unpaid = await calls.readIntent(stripe, id);
      assert.ok(isUnconfirmed(unpaid));
      assert.equal(unpaid.amount_received, 0);
      assert.deepEqual(verdictOfIntent(unpaid, order), { kind: 'open' });

      const paid = await calls.confirmIntent(stripe, id, card);
      assert.equal(paid.amount_received, CENTS);
      assert.equal(verdictOfIntent(paid, order).kind, 'paid');
      const read = await calls.readIntent(stripe, id);
      const charge = read.latest_charge as Stripe.Charge;
      assert.equal(charge.amount, CENTS);
      assert.equal(charge.disputed, false);
      assert.equal(charge.metadata['top_up_id'], wireId('topUp', order.id));
      await eventOf(get(), 'payment_intent.succeeded', id);

      const created = { gte: startedAt - CLOCK_SKEW_SECONDS };
      const { data } = await stripe.paymentIntents.list({ customer, created, limit: 100 });
      assert.deepEqual(
        data.map((each) => each.id),
        [id],
      );
      const again = await stripe.charges.retrieve(charge.id);
      assert.equal(again.payment_intent, id);
      const charges = await stripe.charges.list({ payment_intent: id });
      assert.equal(charges.data[0]?.id, charge.id);
    });

    it('are in the balance transactions, with their charge', async () => {
      const { stripe } = get();
      const { intent } = await payWith(get(), 'pm_card_visa');
      const charge = intent.latest_charge as string;
      const { data } = await stripe.balanceTransactions.list({
        source: charge,
        expand: ['data.source'],
      });
      const [moved] = data;
      assert.equal(moved?.amount, CENTS);
      assert.equal(moved.type, 'charge');
      assert.equal(moved.net, CENTS - moved.fee);
      assert.equal((moved.source as Stripe.Charge).payment_intent, intent.id);
      assert.equal((await stripe.balanceTransactions.retrieve(moved.id)).source, charge);
    });

    it('are confirmed once: another confirmation is refused', async () => {
      const { stripe } = get();
      const { intent, card } = await payWith(get(), 'pm_card_visa');
      const error = await errorOf(
        stripe.paymentIntents.confirm(intent.id, { payment_method: card, off_session: true }),
      );
      assert.equal(error.statusCode, 400);
      assert.equal(error.code, 'payment_intent_unexpected_state');
    });

    it('take no money once canceled, and are not canceled once paid', async () => {
      const { stripe } = get();
      const { customer, card } = await customerWith(get(), 'pm_card_visa');
      const order = newOrder();
      const { id } = await calls.createIntent(stripe, order, customer);
      await calls.cancelIntent(stripe, id);
      const canceled = await calls.readIntent(stripe, id);
      assert.deepEqual(verdictOfIntent(canceled, order), { kind: 'expired' });
      const error = await errorOf(
        stripe.paymentIntents.confirm(id, { payment_method: card, off_session: true }),
      );
      assert.equal(error.code, 'payment_intent_unexpected_state');
      await eventOf(get(), 'payment_intent.canceled', id);

      const { intent } = await payWith(get(), 'pm_card_visa');
      await calls.cancelIntent(stripe, intent.id);
      assert.equal((await calls.readIntent(stripe, intent.id)).status, 'succeeded');
    });

    it('take descriptions and metadata later', async () => {
      const { stripe } = get();
      const { intent } = await payWith(get(), 'pm_card_visa');
      const updated = await stripe.paymentIntents.update(intent.id, { metadata: { note: 'x' } });
      assert.equal(updated.metadata['note'], 'x');
    });

    it('show the suffix of the statement descriptor, in the charge and on the statement', async () => {
      const { stripe } = get();
      const payment: Stripe.PaymentIntentCreateParams = {
        amount: CENTS,
        currency: 'usd',
        payment_method: 'pm_card_visa',
        confirm: true,
        allowed_payment_method_types: ['card'],
      };
      const intent = await stripe.paymentIntents.create({
        ...payment,
        statement_descriptor_suffix: 'TOP-UP',
        expand: ['latest_charge'],
      });
      const charge = intent.latest_charge as Stripe.Charge;
      assert.equal(intent.statement_descriptor_suffix, 'TOP-UP');
      assert.equal(charge.statement_descriptor_suffix, 'TOP-UP');
      assert.match(charge.calculated_statement_descriptor ?? '', /\* TOP-UP$/);
      const error = await errorOf(
        stripe.paymentIntents.create({ ...payment, statement_descriptor_suffix: '12*34' }),
      );
      assert.equal(error.statusCode, 400);
      assert.equal(error.param, 'statement_descriptor_suffix');
    });

    for (const [card, code, declineCode] of DECLINES) {
      it(`are declined with ${declineCode ?? code} for ${card}`, async () => {
        const error = await errorOf(
          get().stripe.paymentIntents.create({
            amount: CENTS,
            currency: 'usd',
            payment_method: card,
            confirm: true,
            allowed_payment_method_types: ['card'],
          }),
        );
        assert.equal(error.type, 'StripeCardError');
        assert.equal(error.statusCode, 402);
        assert.equal(error.code, code);
        if (declineCode !== undefined) assert.equal(error.decline_code, declineCode);
        const { payment_intent: intent } = error;
        assert.equal(intent?.status, 'requires_payment_method');
        assert.equal(intent.last_payment_error?.code, code);
        await eventOf(get(), 'payment_intent.payment_failed', intent.id);
      });
    }

    it('show a decline of a saved card in the intent, and can be tried again', async () => {
      const { stripe } = get();
      const { order, intent, customer } = await payWith(get(), 'pm_card_chargeCustomerFail');
      const verdict = verdictOfIntent(intent, order);
      assert.equal(verdict.kind === 'failed' && verdict.failure.code, 'card_declined');
      assert.equal((intent.latest_charge as Stripe.Charge).status, 'failed');
      const other = await stripe.paymentMethods.attach('pm_card_visa', { customer });
      const paid = await calls.confirmIntent(stripe, intent.id, other.id);
      assert.equal(verdictOfIntent(paid, order).kind, 'paid');
    });

    it('need the owner where the bank wants to see them', async () => {
      const { intent } = await payWith(get(), 'pm_card_authenticationRequired');
      assert.equal(intent.status, 'requires_payment_method');
      assert.equal(intent.last_payment_error?.code, 'authentication_required');
      assert.ok(needsPayer(intent));
    });

    it('lead the owner to the bank, and wait until it has answered', async () => {
      const { stripe } = get();
      const { order, intent } = await payWith(get(), 'pm_card_authenticationRequired');
      const started = await authenticate(stripe, intent.id, 'https://example.com/done');
      assert.equal(started.kind, 'redirect');
      assert.match(started.kind === 'redirect' ? started.url : '', /^https?:\/\//);
      const waiting = await calls.readIntent(stripe, intent.id);
      assert.equal(waiting.status, 'requires_action');
      assert.equal(waiting.next_action?.type, 'redirect_to_url');
      assert.notEqual(verdictOfIntent(waiting, order).kind, 'paid');
      assert.deepEqual(await authenticate(stripe, intent.id, 'https://example.com/done'), started);
      await eventOf(get(), 'payment_intent.requires_action', intent.id);
    });

    it('take no card of another customer', async () => {
      const { stripe } = get();
      const { customer } = await customerWith(get(), 'pm_card_visa');
      const { card } = await customerWith(get(), 'pm_card_visa');
      const { id } = await calls.createIntent(stripe, newOrder(), customer);
      const error = await errorOf(
        stripe.paymentIntents.confirm(id, { payment_method: card, off_session: true }),
      );
      assert.equal(error.statusCode, 400);
      assert.equal(error.type, 'StripeInvalidRequestError');
    });
  });
}
