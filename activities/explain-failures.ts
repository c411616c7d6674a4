/**
 * Turns the error of a step into one that an operator understands in the Temporal UI, and sets the delay before the
 * next attempt: the one that Stripe asked for, or that of the workflow's retry policy in proportion to STEP_RETRY_MS.
 * Both with jitter, so that after an outage the steps that failed do not all return at once.
 */
import { ApplicationFailure, type Context } from '@temporalio/activity';
import { TemporalFailure } from '@temporalio/common';
import type { ActivityInterceptors } from '@temporalio/worker';
import { Stripe } from 'stripe';
import { jittered, STEP_RETRY_MS } from '../src/domain/retries.ts';
import { PaymentMismatchError } from '../src/stripe/verdict.ts';

/** The interceptor that every worker installs. */
export function explainFailures(stepRetryMs: number) {
  return (context: Context): ActivityInterceptors => ({
    inbound: {
      execute: (input, next) =>
        next(input).catch((error: unknown) => {
          throw delayed(explain(error), context, stepRetryMs);
        }),
    },
  });
}

/** The failure with the delay before the next attempt, unless it has one that Stripe asked for. */
function delayed(error: unknown, { info }: Context, stepRetryMs: number): unknown {
  if (error instanceof TemporalFailure && !(error instanceof ApplicationFailure)) return error; // canceled
  const failure = ApplicationFailure.fromError(error);
  const { initialInterval, backoffCoefficient = 2, maximumInterval } = info.retryPolicy ?? {};
  if (failure.nextRetryDelay != null || initialInterval === undefined) return failure;
  const grownMs = Number(initialInterval) * backoffCoefficient ** (info.attempt - 1);
  const delayMs = Math.min(grownMs, Number(maximumInterval ?? Infinity));
  return ApplicationFailure.fromError(failure, {
    nextRetryDelay: jittered(delayMs * (stepRetryMs / STEP_RETRY_MS), Math.random()),
  });
}

/** The failure's type is one of our error codes where one fits. */
function explain(error: unknown): unknown {
  if (error instanceof PaymentMismatchError) {
    return ApplicationFailure.create({
      type: 'payment_mismatch',
      message: `The processor shows a different payment than the one requested: ${error.message}`,
      nonRetryable: true,
    });
  }
  if (error instanceof Stripe.errors.StripeError) {
    const retryAfterMs = retryAfterMsOf(error);
    const { statusCode, requestId } = error;
    const answer = statusCode === undefined ? 'no response' : `status ${statusCode}`;
    const request = requestId === undefined ? '' : `, request ${requestId}`;
    return ApplicationFailure.create({
      type: 'service_unavailable',
      message: `The payment processor refused or did not respond (${error.type}, ${answer}${request}): ${error.message}`,
      details: [{ requestId, status: statusCode, retryAfterMs }],
      // A long wait is left to the workflow, which shows what it waits for and can be canceled.
      nonRetryable: retryAfterMs > RETRY_DELAY_MS_MAX,
      ...(retryAfterMs > 0 && { nextRetryDelay: notBefore(retryAfterMs) }),
    });
  }
  return error;
}

/** Longer waits that Stripe asks for are left to the workflow. */
const RETRY_DELAY_MS_MAX = 10_000;

/** Up to a quarter longer than Stripe asked for. */
function notBefore(retryAfterMs: number): number {
  return Math.min(retryAfterMs, RETRY_DELAY_MS_MAX) * (1 + Math.random() / 4);
}

/** Stripe's `Retry-After`, or 0. */
function retryAfterMsOf({ headers }: Stripe.errors.StripeError): number {
  const seconds = Number(headers?.['retry-after']);
  return seconds > 0 ? seconds * 1_000 : 0;
}
