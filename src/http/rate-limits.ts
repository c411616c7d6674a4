/**
 * Requests a second, by account or by address, in the memory of this process: of the reads and refunds of an
 * account, and of requests with a bad key from an address. Charges have no limit of this kind, they have
 * fair shares (batcher.ts).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from '../domain/errors.ts';

/**
 * A refusal takes this long, and so a client that sends its next request at the answer to its last one cannot
 * keep the process busy with refusals. It is told to wait for a second anyway.
 */
export const REFUSAL_MS = 1_000;

export interface RateLimitSettings {
  readonly readsPerSecond: number;
  readonly refundsPerSecond: number;
  /** 0 for none, which is right behind a proxy: there all clients have one address. */
  readonly failedKeysPerSecond: number;
}

export type RateLimitHeaders = Readonly<Record<'RateLimit' | 'RateLimit-Policy', string>>;

/** One policy, as the `RateLimit` headers name it (draft-ietf-httpapi-ratelimit-headers). */
export class RateLimit {
  readonly #name: string;
  readonly #limiter: RateLimiterMemory;
  readonly #quota: number;

  constructor(name: string, quota: number) {
    this.#name = name;
    this.#quota = quota;
    this.#limiter = new RateLimiterMemory({ points: quota, duration: 1 });
  }

  /** Counts a request. Rejects with `rate_limited` past the quota. */
  async count(key: string): Promise<RateLimitHeaders> {
    try {
      return this.#headers(await this.#limiter.consume(key));
    } catch (state) {
      if (!(state instanceof RateLimiterRes)) throw state;
      await delay(REFUSAL_MS);
      throw this.#refusal(state);
    }
  }

  #refusal(state: RateLimiterRes): ApiError {
    const retryAfterSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1_000));
    return new ApiError(
      'rate_limited',
      `At most ${this.#quota} ${this.#name.replace('-', ' ')} a second; try again after Retry-After seconds.`,
      { retryAfterSeconds, headers: this.#headers(state) },
    );
  }

  #headers({ remainingPoints, msBeforeNext }: RateLimiterRes): RateLimitHeaders {
    const resetSeconds = Math.max(0, Math.ceil(msBeforeNext / 1_000));
    const policy = `"${this.#name}"`;
    return {
      RateLimit: `${policy};r=${Math.max(0, remainingPoints)};t=${resetSeconds}`,
      'RateLimit-Policy': `${policy};q=${this.#quota};w=1`,
    };
  }
}

export interface RateLimits {
  readonly reads: RateLimit;
  readonly refunds: RateLimit;
  readonly failedKeys: RateLimit | undefined;
}

export function createRateLimits(settings: RateLimitSettings): RateLimits {
  const { readsPerSecond, refundsPerSecond, failedKeysPerSecond } = settings;
  return {
    reads: new RateLimit('reads', readsPerSecond),
    refunds: new RateLimit('refunds', refundsPerSecond),
    failedKeys:
      failedKeysPerSecond === 0
        ? undefined
        : new RateLimit('failed-authentications', failedKeysPerSecond),
  };
}
