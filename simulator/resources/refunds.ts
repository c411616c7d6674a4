/**
 * Refunds: succeed at once, or are pending at first, as the card decides. A failure, by a control or by the card, gives
 * the money back to us.
 */
import type Stripe from 'stripe';
import { endWarnings } from './fraud-warnings.ts';
import { endReviews } from './reviews.ts';
import { move } from './balance-transactions.ts';
import { succeededChargeOf } from './charges.ts';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { noSuch, refused } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';
import { getIntent } from './payment-intents.ts';
import { laterOf } from './payment-methods.ts';
import type { Params } from '../http/params.ts';

export const createRefund: Handler = (context, params) => {
  const charge = refundedCharge(context, params);
  const asked = params.integer('amount', { min: 1 });
  const reason = params.oneOf('reason', ['duplicate', 'fraudulent', 'requested_by_customer']);
  const left = charge.amount - charge.amount_refunded;
  if (charge.disputed && !disputeWon(context, charge.id)) {
    throw refused(`Charge ${charge.id} has been charged back; cannot refund.`, 'charge_disputed');
  }
  if (left === 0) {
    const message = `Charge ${charge.id} has already been refunded.`;
    throw refused(message, 'charge_already_refunded');
  }
  const amount = asked ?? left;
  if (amount > left) {
    throw refused(
      `Refund amount ($${dollars(amount)}) is greater than unrefunded amount on charge ($${dollars(left)})`,
      undefined,
      'amount',
    );
  }
  const method = context.store.follow('payment_method', charge.payment_method);
  const later = method && laterOf(context, method)?.kind;
  const refund: Stripe.Refund = {
    id: newId('re'),
    object: 'refund',
    amount,
    balance_transaction: null,
    charge: charge.id,
    created: context.now,
    currency: charge.currency,
    customer: charge.customer,
    customer_account: null,
    metadata: params.metadata(),
    payment_intent: charge.payment_intent,
    payment_method: charge.payment_method,
    reason: reason ?? null,
    receipt_number: null,
    source_transfer_reversal: null,
    status: later === 'pending_refund' ? 'pending' : 'succeeded',
    transfer_reversal: null,
  };
  const movement = { type: 'refund', category: 'refund', source: refund.id, fee: 0 } as const;
  refund.balance_transaction = move(context, { ...movement, amount: -amount }).id;
  charge.amount_refunded += amount;
  charge.refunded = charge.amount_refunded === charge.amount;
  const isToChange = later === 'pending_refund' || later === 'failing_refund';
  context.store.insert(refund, {}, isToChange ? context.now : null);
  context.store.update(charge);
  record(context, 'refund.created', refund);
  record(context, 'charge.refunded', charge);
  endWarnings(context, charge);
  endReviews(context, charge);
  return ok(refund);
};

/** A pending refund succeeds; one to a card that rejects refunds fails. */
export function settleDueRefund(context: Context, refund: Stripe.Refund): void {
  if (refund.status !== 'pending') {
    failRefund(context, refund.id);
    return;
  }
  refund.status = 'succeeded';
  context.store.update(refund, null);
  record(context, 'refund.updated', refund);
}

/** The card's bank rejected the refund, so the money returns to us. */
export function failRefund(context: Context, id: string): Stripe.Refund {
  const refund = getRefund(context, id);
  if (refund.status !== 'succeeded') {
    throw refused(`Refund ${id} has a status of ${refund.status}.`);
  }
  const charge = context.store.follow('charge', refund.charge);
  if (!charge) throw new Error(`${id} has no charge`);
  const { amount } = refund;
  const movement = { type: 'refund_failure', category: 'refund_failure', source: id } as const;
  refund.status = 'failed';
  refund.failure_reason = 'expired_or_canceled_card';
  refund.failure_balance_transaction = move(context, { ...movement, amount, fee: 0 }).id;
  charge.amount_refunded -= amount;
  charge.refunded = false;
  context.store.update(refund, null);
  context.store.update(charge);
  record(context, 'refund.updated', refund);
  record(context, 'refund.failed', refund);
  return refund;
}

export const retrieveRefund: Handler = (context, _params, id) => ok(getRefund(context, id));

export const listRefunds: Handler = (context, params) => {
  const where = {
    charge: params.string('charge'),
    payment_intent: params.string('payment_intent'),
  };
  return ok(listPage(context, params, 'refund', '/v1/refunds', where));
};

function getRefund(context: Context, id: string): Stripe.Refund {
  const refund = context.store.find('refund', id);
  if (!refund) throw noSuch('refund', id);
  return refund;
}

function refundedCharge(context: Context, params: Params): Stripe.Charge {
  const chargeId = params.string('charge');
  const intentId = params.string('payment_intent');
  if (chargeId !== undefined) {
    const charge = context.store.find('charge', chargeId);
    if (!charge) throw noSuch('charge', chargeId, 'charge');
    return charge;
  }
  if (intentId === undefined) throw params.missing('payment_intent');
  const charge = succeededChargeOf(context, getIntent(context, intentId, 'payment_intent'));
  if (!charge) {
    const message = `This PaymentIntent (${intentId}) does not have a successful charge to refund.`;
    throw refused(message, 'payment_intent_unexpected_state');
  }
  return charge;
}

function disputeWon(context: Context, charge: string): boolean {
  return context.store
    .all('dispute', { charge })
    .every(({ status }) => status === 'won' || status.startsWith('warning_'));
}

function dollars(cents: number): string {
  return (cents / 100).toFixed(2);
}
