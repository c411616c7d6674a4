/** Puts an error of Stripe's library into words for an operator: who did not answer, with which status and request. */
import { Stripe } from 'stripe';

/** One sentence. Errors of others keep their own message. */
export function failureReason(error: unknown): string {
  if (!(error instanceof Stripe.errors.StripeError)) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
  if (error.statusCode === undefined) return `Stripe could not be reached: ${causeOf(error)}`;
  const request = error.requestId ? `, request ${error.requestId}` : '';
  return `Stripe answered ${error.statusCode} (${error.type}${request}): ${error.message}`;
}

/** The library's own sentence names neither address nor reason; the error underneath does. */
function causeOf(error: Stripe.errors.StripeError): string {
  const detail: unknown = error.detail;
  return detail instanceof Error ? detail.message : error.message;
}
