/**
 * A payment from the saved card that the bank wants the cardholder to confirm. The same payment intent is confirmed
 * again with the payer there, so no second payment can exist. Stripe and the bank show the pages.
 */
import { Stripe } from 'stripe';
import { readIntent } from './calls.ts';
import { idOf, needsPayer } from './verdict.ts';

export type Authentication =
  /** Send the payer there. */
  | { readonly kind: 'redirect'; readonly url: string }
  /** Without the payer, or by an earlier try. Or the bank is still at it. */
  | { readonly kind: 'paid' }
  /** Declined, canceled, or refused for now. The top-up's workflow reads which. */
  | { readonly kind: 'unpaid' };

/**
 * No idempotency key: each call is another try by the payer, and an intent takes its money once. A card that the payer
 * confirms here is set up for later payments, so that its bank asks less often.
 */
export async function authenticate(
  stripe: Stripe,
  intentId: string,
  returnUrl: string,
): Promise<Authentication> {
  const intent = await readIntent(stripe, intentId);
  if (!needsPayer(intent) || redirectOf(intent)) return stateOf(intent);
  const cardId = idOf(intent.last_payment_error?.payment_method);
  if (cardId === undefined) return { kind: 'unpaid' };
  try {
    const confirmed = await stripe.paymentIntents.confirm(intentId, {
      payment_method: cardId,
      return_url: returnUrl,
      payment_method_options: {
        card: { setup_future_usage: 'off_session', setup_credential_usage: 'unscheduled' },
      },
    });
    return stateOf(confirmed);
  } catch (error) {
    // A decline, a card that was removed, or the payer has tried elsewhere meanwhile.
    const isRefusal =
      error instanceof Stripe.errors.StripeCardError ||
      error instanceof Stripe.errors.StripeInvalidRequestError;
    if (!isRefusal) throw error;
    return stateOf(await readIntent(stripe, intentId));
  }
}

function stateOf(intent: Stripe.PaymentIntent): Authentication {
  const isPaid = intent.status === 'succeeded' || intent.status === 'processing';
  return redirectOf(intent) ?? { kind: isPaid ? 'paid' : 'unpaid' };
}

function redirectOf({ next_action }: Stripe.PaymentIntent): Authentication | undefined {
  const url = next_action?.redirect_to_url?.url;
  return url ? { kind: 'redirect', url } : undefined;
}
