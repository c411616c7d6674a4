/**
 * What the errors of Stripe's library mean: for an operator who reads them, and for calls that name an
 * unknown object. Every command explains its errors by this, so it does not load the library, whose 200 files
 * take longer than most commands.
 */
import type { Stripe } from 'stripe';

/**
 * One sentence: whether Stripe responded, with which status and request. Other errors keep their own message.
 */
export function failureReason(error: unknown): string {
  if (!isOfStripe(error)) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
  if (error.statusCode === undefined) return `Stripe could not be reached: ${causeOf(error)}`;
  const request = error.requestId ? `, request ${error.requestId}` : '';
  return `Stripe answered ${error.statusCode} (${error.type}${request}): ${error.message}`;
}

/** Every error of the library's, and no other, has this member. */
function isOfStripe(error: unknown): error is Stripe.errors.StripeError {
  return error instanceof Error && 'rawType' in error;
}

/** The library's message has neither address nor reason; the underlying error does. */
function causeOf(error: Stripe.errors.StripeError): string {
  const detail: unknown = error.detail;
  return detail instanceof Error ? detail.message : error.message;
}

/** Whether a call that failed may have taken effect: Stripe did not respond, or failed itself. */
export function mayHaveTakenEffect(error: unknown): boolean {
  return !isOfStripe(error) || error.statusCode === undefined || error.statusCode >= 500;
}

/** Whether Stripe refused this call for what it asks, without effect. No other status says that. */
export function isRefusal(error: unknown): error is Stripe.errors.StripeInvalidRequestError {
  return (
    isOfStripe(error) && error.type === 'StripeInvalidRequestError' && error.statusCode === 400
  );
}

/** Whether Stripe refused a call because it does not know the customer: deleted, or of another Stripe account. */
export function isCustomerMissing(error: unknown): boolean {
  return isMissing(error) && error.param === 'customer';
}

/** Whether Stripe does not know an object that the call names. */
export function isMissing(error: unknown): error is Stripe.errors.StripeInvalidRequestError {
  return (
    isOfStripe(error) &&
    error.type === 'StripeInvalidRequestError' &&
    error.code === 'resource_missing'
  );
}
