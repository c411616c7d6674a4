/**
 * Radar's reviews: a rule or a person asks whether a payment is genuine. The payment has succeeded, and
 * nothing waits.
 */
import type Stripe from 'stripe';
import type { Context } from '../context.ts';
import { record } from '../events.ts';
import { noSuch, refused } from '../http/errors.ts';
import { newId } from '../ids.ts';
import { succeededChargeOf } from './charges.ts';
import { getIntent } from './payment-intents.ts';

export function openReview(context: Context, paymentIntent: string): Stripe.Review {
  const intent = getIntent(context, paymentIntent);
  const charge = succeededChargeOf(context, intent);
  if (!charge) throw refused(`${paymentIntent} has no successful charge to review.`);
  const review: Stripe.Review = {
    id: newId('prv'),
    object: 'review',
    billing_zip: null,
    charge: charge.id,
    closed_reason: null,
    created: context.now,
    ip_address: null,
    ip_address_location: null,
    livemode: false,
    open: true,
    opened_reason: 'rule',
    payment_intent: paymentIntent,
    reason: 'rule',
    session: null,
  };
  context.store.insert(review);
  context.store.update({ ...intent, review: review.id });
  context.store.update({ ...charge, review: review.id });
  record(context, 'review.opened', review);
  return review;
}

export function approveReview(context: Context, id: string): Stripe.Review {
  const review = context.store.find('review', id);
  if (!review) throw noSuch('review', id);
  return close(context, review, 'approved');
}

/** A refund in full or a dispute answers the question. */
export function endReviews(context: Context, { id, refunded, disputed }: Stripe.Charge): void {
  if (!refunded && !disputed) return;
  for (const review of context.store.all('review', { charge: id })) {
    const [refund] = context.store.all('refund', { charge: id });
    const ofRefund = refund?.reason === 'fraudulent' ? 'refunded_as_fraud' : 'refunded';
    if (review.open) close(context, review, disputed ? 'disputed' : ofRefund);
  }
}

function close(
  context: Context,
  review: Stripe.Review,
  reason: Stripe.Review.ClosedReason,
): Stripe.Review {
  const closed: Stripe.Review = { ...review, open: false, closed_reason: reason, reason };
  context.store.update(closed);
  record(context, 'review.closed', closed);
  return closed;
}
