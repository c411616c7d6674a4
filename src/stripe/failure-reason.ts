/** Explains an error of Stripe's library to an operator: whether Stripe responded, with which status and request. */
import { Stripe } from 'stripe';

/** One sentence. Other errors keep their own message. */
export function failureReason(error: unknown): string {
  if (!(error instanceof Stripe.errors.StripeError)) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
  if (error.statusCode === undefined) return `Stripe could not be reached: ${causeOf(error)}`;
  const request = error.requestId ? `, request ${error.requestId}` : '';
  return `Stripe answered ${error.statusCode} (${error.type}${request}): ${error.message}`;
}

/** The library's message has neither address nor reason; the underlying error does. */
function causeOf(error: Stripe.errors.StripeError): string {
  const detail: unknown = error.detail;
  return detail instanceof Error ? detail.message : error.message;
}
