/**
 * Limits requests per second, counted in the memory of this process: an account's reads, changes and refunds, and an
 * address's requests with a bad key; and an account's new quotes per hour. Charges have no such limit; they have fair shares (charging/fair-queue.ts).
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { delayRefusal } from '../charging/delay-refusal.ts';
import { ApiError } from '../domain/errors.ts';

export interface RateLimitSettings {
  readonly readsPerSecond: number;
  /** Each may leave an entry of the audit log, which is kept forever. */
  readonly changesPerSecond: number;
  readonly refundsPerSecond: number;
  /** 0 for no limit, which is right behind a proxy: there, all clients have the same address. */
  readonly failedKeysPerSecond: number;
}

export type RateLimitHeaders = Readonly<Record<'RateLimit' | 'RateLimit-Policy', string>>;

type Period = 'second' | 'hour';
const SECONDS: Readonly<Record<Period, number>> = { second: 1, hour: 3_600 };

/** The quotes of one account. Stripe charges for calculations that no payment follows. */
const QUOTES_PER_HOUR = 20;

/** One policy, as named in the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers). */
export class RateLimit {
  readonly #name: string;
  readonly #limiter: RateLimiterMemory;
  readonly #quota: number;
  readonly #period: Period;

  constructor(name: string, quota: number, period: Period = 'second') {
    this.#name = name;
    this.#quota = quota;
    this.#period = period;
    this.#limiter = new RateLimiterMemory({ points: quota, duration: SECONDS[period] });
  }

  /** Counts a request. Rejects with `rate_limited` beyond the quota. */
  async count(key: string): Promise<RateLimitHeaders> {
    try {
      return this.#headers(await this.#limiter.consume(key));
    } catch (state) {
      if (!(state instanceof RateLimiterRes)) throw state;
      await delayRefusal();
      throw this.#refusal(state);
    }
  }

  #refusal(state: RateLimiterRes): ApiError {
    const retryAfterSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1_000));
    return new ApiError(
      'rate_limited',
      `At most ${this.#quota} ${this.#name.replace('-', ' ')} per ${this.#period}; try again after Retry-After seconds.`,
      { retryAfterSeconds, headers: this.#headers(state) },
    );
  }

  #headers({ remainingPoints, msBeforeNext }: RateLimiterRes): RateLimitHeaders {
    const resetSeconds = Math.max(0, Math.ceil(msBeforeNext / 1_000));
    const policy = `"${this.#name}"`;
    return {
      RateLimit: `${policy};r=${Math.max(0, remainingPoints)};t=${resetSeconds}`,
      'RateLimit-Policy': `${policy};q=${this.#quota};w=${SECONDS[this.#period]}`,
    };
  }
}

export interface RateLimits {
  readonly reads: RateLimit;
  readonly changes: RateLimit;
  readonly refunds: RateLimit;
  /** Quotes whose tax Stripe has to calculate. */
  readonly quotes: RateLimit;
  readonly failedKeys: RateLimit | undefined;
}

export function createRateLimits(settings: RateLimitSettings): RateLimits {
  const { readsPerSecond, changesPerSecond, refundsPerSecond, failedKeysPerSecond } = settings;
  return {
    reads: new RateLimit('reads', readsPerSecond),
    changes: new RateLimit('changes', changesPerSecond),
    refunds: new RateLimit('refunds', refundsPerSecond),
    quotes: new RateLimit('new-quotes', QUOTES_PER_HOUR, 'hour'),
    failedKeys:
      failedKeysPerSecond === 0
        ? undefined
        : new RateLimit('failed-authentications', failedKeysPerSecond),
  };
}
