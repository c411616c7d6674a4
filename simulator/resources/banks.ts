/** What the bank of a test card does a little after the payment: disputes it, or warns of fraud. */
import type Stripe from 'stripe';
import type { Context } from '../context.ts';
import { disputableCents, openDispute } from './disputes.ts';
import { warn } from './fraud-warnings.ts';
import { laterOf } from './payment-methods.ts';

export function objectToPayment(context: Context, charge: Stripe.Charge): void {
  context.store.update(charge, null);
  const { payment_intent: paymentIntent } = charge;
  const method = context.store.follow('payment_method', charge.payment_method);
  const later = method && laterOf(context, method);
  if (typeof paymentIntent !== 'string') return;
  if (later?.kind === 'fraud_warning') warn(context, paymentIntent);
  if (later?.kind === 'dispute' && disputableCents(context, charge) > 0) {
    const { reason, isInquiry } = later;
    openDispute(context, {
      paymentIntent,
      amount: undefined,
      reason,
      isInquiry,
      currency: undefined,
    });
  }
}
