/** The bank's page of a payment that the cardholder must confirm: confirmed, or refused. */
import type Stripe from 'stripe';
import type { Context } from '../context.ts';
import { refuseAuthentication, getIntent, succeed } from '../resources/payment-intents.ts';

export function waitingIntent(context: Context, id: string): Stripe.PaymentIntent | undefined {
  const intent = getIntent(context, id);
  return intent.status === 'requires_action' ? intent : undefined;
}

/** The address to which the cardholder returns. */
export function finishAuthentication(
  context: Context,
  id: string,
  isConfirmed: boolean,
): string | undefined {
  const intent = waitingIntent(context, id);
  const returnUrl = intent?.next_action?.redirect_to_url?.return_url;
  const method = context.store.follow('payment_method', intent?.payment_method);
  if (!intent || !returnUrl || !method) return undefined;
  intent.next_action = null;
  if (isConfirmed) succeed(context, intent, method);
  else refuseAuthentication(context, intent, method);
  const url = new URL(returnUrl);
  url.searchParams.set('payment_intent', intent.id);
  url.searchParams.set('redirect_status', isConfirmed ? 'succeeded' : 'failed');
  return url.href;
}
