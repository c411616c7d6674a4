/**
 * Limits requests per second, counted in the memory of this process: an account's reads, changes and refunds, and an
 * address's requests with a bad key; and an account's new quotes per hour. Charges have no such limit; they
 * have fair shares (charging/fair-queue.ts).
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { delayRefusal } from '../charging/delay-refusal.ts';
import { ApiError } from '../domain/errors.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { isSignedIn } from './callers.ts';

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

/** The quotes of one account by its keys, and as many in its sessions. Stripe charges for calculations that no payment follows. */
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

  /**
   * Counts a request of an account's sessions, of its keys, or of its spend keys, each apart: nobody with a
   * lesser key keeps the owner from revoking it. One spend key has half of what all of them have together.
   */
  async countFor(caller: KeyOwner): Promise<RateLimitHeaders> {
    const { accountId, keyId, spend } = caller;
    if (isSignedIn(caller)) return this.count(`session ${accountId}`);
    if (!spend) return this.count(accountId);
    const own = await this.count(keyId, Math.min(2, this.#quota));
    await this.count(`spend keys ${accountId}`);
    return own;
  }

  /** Counts a request as `cost` of the quota. Rejects with `rate_limited` beyond it. */
  async count(key: string, cost = 1): Promise<RateLimitHeaders> {
    try {
      return this.#headers(await this.#limiter.consume(key, cost), cost);
    } catch (state) {
      if (!(state instanceof RateLimiterRes)) throw state;
      await delayRefusal();
      throw this.#refusal(state, cost);
    }
  }

  #refusal(state: RateLimiterRes, cost: number): ApiError {
    const retryAfterSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1_000));
    const quota = Math.floor(this.#quota / cost);
    return new ApiError(
      'rate_limited',
      `At most ${quota} ${this.#name.replace('-', ' ')} per ${this.#period}. ${againIn(retryAfterSeconds)}`,
      { retryAfterSeconds, headers: this.#headers(state, cost) },
    );
  }

  #headers({ remainingPoints, msBeforeNext }: RateLimiterRes, cost: number): RateLimitHeaders {
    const resetSeconds = Math.max(0, Math.ceil(msBeforeNext / 1_000));
    const policy = `"${this.#name}"`;
    return {
      RateLimit: `${policy};r=${Math.max(0, Math.floor(remainingPoints / cost))};t=${resetSeconds}`,
      'RateLimit-Policy': `${policy};q=${Math.floor(this.#quota / cost)};w=${SECONDS[this.#period]}`,
    };
  }
}

function againIn(seconds: number): string {
  return `Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`;
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
