/** The delivery of an event to a webhook endpoint: when a failed one is retried, and when it is given up. */
import { jittered } from './retries.ts';

export const DELIVERY_STATUSES = ['waiting', 'delivered', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** How long a delivery is tried, and how long an endpoint may fail without a break before it is disabled. */
export const GIVEN_UP_AFTER_DAYS = 5;

/** How long an endpoint may take to answer. */
export const ANSWER_TIMEOUT_MS = 15_000;
/** How much of an answer the log keeps. */
export const ANSWER_CHARACTERS_MAX = 1_000;

/** The pauses after the first failures, in seconds. The last repeats until the delivery is given up. */
const RETRY_SECONDS = [5, 30, 120, 600, 1_800];
/** The first pause by default; the setting `WEBHOOK_RETRY_MS` replaces it. The others change in proportion. */
export const WEBHOOK_RETRY_MS = 5_000;

/** The pause after an attempt, counted from 1, with jitter by `chance` from 0 to 1. */
export function webhookRetryMs(attempt: number, firstMs: number, chance: number): number {
  const seconds = RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length) - 1] ?? 0;
  return jittered(seconds * 1_000 * (firstMs / WEBHOOK_RETRY_MS), chance);
}
