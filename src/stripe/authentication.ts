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
  /** Decided without the payer, or by an earlier try: the top-up's workflow reads which. */
  | { readonly kind: 'decided' };

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
  if (!needsPayer(intent)) return { kind: 'decided' };
  const started = redirectOf(intent);
  if (started) return started;
  const cardId = idOf(intent.last_payment_error?.payment_method);
  if (cardId === undefined) return { kind: 'decided' };
  try {
    const confirmed = await stripe.paymentIntents.confirm(intentId, {
      payment_method: cardId,
      return_url: returnUrl,
      payment_method_options: {
        card: { setup_future_usage: 'off_session', setup_credential_usage: 'unscheduled' },
      },
    });
    return redirectOf(confirmed) ?? { kind: 'decided' };
  } catch (error) {
    // The intent shows the decline, or that it was paid or canceled meanwhile.
    if (error instanceof Stripe.errors.StripeCardError) return { kind: 'decided' };
    if (error instanceof Stripe.errors.StripeInvalidRequestError) return { kind: 'decided' };
    throw error;
  }
}

function redirectOf({ next_action }: Stripe.PaymentIntent): Authentication | undefined {
  const url = next_action?.redirect_to_url?.url;
  return url ? { kind: 'redirect', url } : undefined;
}
