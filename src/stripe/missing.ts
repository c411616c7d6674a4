/** Refusals of calls that name an object which Stripe does not know. */
import { Stripe } from 'stripe';

/** Whether Stripe refused a call because it does not know the customer: deleted, or of another Stripe account. */
export function isCustomerMissing(error: unknown): boolean {
  return isMissing(error) && error.param === 'customer';
}

/** Whether Stripe does not know an object that the call names. */
export function isMissing(error: unknown): error is Stripe.errors.StripeInvalidRequestError {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing'
  );
}
