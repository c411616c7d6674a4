/** The steps that `topUp` and `reversals` share: how they are called, and how long to wait after one has failed. */
import { type ActivityFailure, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { TopUpPaymentActivities } from '../activities/top-up-payments.ts';
import type { ReversalActivities } from '../activities/reversals.ts';
import type { TopUpActivities } from '../activities/top-ups.ts';
import { jittered } from '../src/domain/retries.ts';
import { stripeTaskQueue } from '../src/domain/task-queues.ts';
import { retryAfterMsOf, type Steps } from './steps.ts';

/** The wait after a step has used up its attempts. It doubles from the second to the longest. */
const RETRY_MS_MIN = 5_000;
export const RETRY_MS_MAX = 600_000;

const STEP = {
  startToCloseTimeout: '15s',
  // Every step sends a heartbeat each second (activities/heartbeat.ts), so a killed worker costs 5 s.
  heartbeatTimeout: '5s',
  // A workflow does not see its activities' retries, so there are only a few before it shows `Stuck`.
  retry: {
    initialInterval: '1s',
    backoffCoefficient: 2,
    maximumInterval: '5s',
    maximumAttempts: 5,
  },
} as const;

/** Steps that normally need only Postgres. */
export function inPostgres(summary: string): TopUpActivities {
  return proxyActivities<TopUpActivities>({ ...STEP, summary });
}

/** Temporal's priorities: 1 goes first, 3 is the default. */
const FINISHES_PAYMENT = 1;
export const OPENS_PAYMENT = 3;

/**
 * Steps that call the processor, in a separate, paced queue. When it is backed up, steps that finish a
 * payment go before steps that open another one.
 */
export function atProcessor(
  summary: string,
  priorityKey = FINISHES_PAYMENT,
): TopUpPaymentActivities & ReversalActivities {
  return proxyActivities<TopUpPaymentActivities & ReversalActivities>({
    ...STEP,
    taskQueue: stripeTaskQueue(workflowInfo().taskQueue),
    priority: { priorityKey },
    summary,
  });
}

/**
 * Waits for the processor's `Retry-After`, which only a cancellation ends, and then until the step is due or
 * requested.
 */
export async function pauseAfter(
  steps: Steps,
  step: string,
  failure: ActivityFailure,
  isCanceling: () => boolean,
): Promise<void> {
  const retryAfterMs = Math.min(retryAfterMsOf(failure), RETRY_MS_MAX);
  if (retryAfterMs > 0) {
    await steps.pause(retryAfterMs, "The processor's Retry-After", isCanceling);
  }
  const delayMs = Math.min(RETRY_MS_MIN * 2 ** Math.max(steps.failures - 2, 0), RETRY_MS_MAX);
  await rest(steps, jittered(delayMs, Math.random()), `Try ${step} again`, isCanceling);
}

/** Whether a message ended the pause. Clears the message. */
export async function rest(
  steps: Steps,
  timeoutMs: number,
  summary: string,
  isCanceling: () => boolean,
): Promise<boolean> {
  const isTold = await steps.pause(timeoutMs, summary, () => steps.woken || isCanceling());
  steps.woken = false;
  return isTold;
}
