/** Repeats failed calls to Temporal until the connection closes. */
import { setTimeout as delay } from 'node:timers/promises';
import { defaultGrpcRetryOptions, type GrpcRetryOptions } from '@temporalio/client';

export interface GrpcRetries extends GrpcRetryOptions {
  /** Repeats nothing from now on. Resolves when every repeat that was already due to start has started. */
  end(): Promise<void>;
}

/**
 * The retries of `@temporalio/client` start from timers, which nothing cancels: one that fires after the connection
 * closed throws where nobody can catch it, and ends the process with an error. So end them before you close it.
 */
export function createGrpcRetries(attemptsMax: number): GrpcRetries {
  const usual = defaultGrpcRetryOptions({ maxAttempts: attemptsMax });
  let isEnded = false;
  let lastStartsAt = 0;
  return {
    retryableDecider: (attempt, status) => !isEnded && usual.retryableDecider(attempt, status),
    delayFunction: (attempt, status) => {
      const delayMs = usual.delayFunction(attempt, status);
      lastStartsAt = Math.max(lastStartsAt, performance.now() + delayMs);
      return delayMs;
    },
    end: async () => {
      isEnded = true;
      // A timer may fire a millisecond early or late.
      const leftMs = lastStartsAt - performance.now() + 2;
      if (leftMs > 0) await delay(leftMs);
    },
  };
}
