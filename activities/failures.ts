/** What went wrong in a step, as an operator reads it in the Temporal UI, and when the processor may be asked again. */
import { ApplicationFailure } from '@temporalio/activity';
import { Stripe } from 'stripe';
import { PaymentMismatchError } from '../src/processor/verdict.ts';

/** Types are our error codes where one fits. */
export function failureFor(error: unknown): unknown {
  if (error instanceof PaymentMismatchError) {
    return ApplicationFailure.create({
      type: 'payment_mismatch',
      message: `The processor shows another payment than the one asked for: ${error.message}`,
      nonRetryable: true,
    });
  }
  if (error instanceof Stripe.errors.StripeError) {
    const retryAfterMs = retryAfterMsOf(error);
    return ApplicationFailure.create({
      type: 'service_unavailable',
      message: `The payment processor refused or did not answer (${error.type}): ${error.message}`,
      details: [{ requestId: error.requestId, status: error.statusCode, retryAfterMs }],
      ...(retryAfterMs > 0 && { nextRetryDelay: retryAfterMs }),
    });
  }
  return error;
}

/** How long Stripe asks to be left alone; 0 when it does not. */
function retryAfterMsOf({ headers }: Stripe.errors.StripeError): number {
  const seconds = Number(headers?.['retry-after']);
  return seconds > 0 ? seconds * 1_000 : 0;
}
