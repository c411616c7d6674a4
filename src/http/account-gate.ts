/**
 * How much one account may have in progress at a time. Anything beyond that waits until the account's own work ends,
 * and takes neither connections nor event-loop time from others.
 */
import { delayRefusal } from '../charging/delay-refusal.ts';
import { ApiError } from '../domain/errors.ts';
import { giveUpAfter } from '../give-up-after.ts';

export interface AccountGateOptions {
  /**
   * The total weight that an account may have in progress. A single piece of work may exceed it. Asked for
   * each piece when it is a function.
   */
  readonly weightMax: number | (() => number);
  readonly waitMsMax: number;
  /** Requests of one account that may wait. */
  readonly waitingMax: number;
  /**
   * How long a share stays taken after its work ends. It grows with the number of waiting requests, up to
   * `MANY_WAITING`.
   */
  readonly rest?: Rest;
}

export interface Rest {
  /** Whether anybody would gain from it now. */
  readonly isUseful: () => boolean;
  /** How long it is for each millisecond of the work. */
  readonly factor: number;
  readonly msMax: number;
}

/**
 * The number of waiting requests at which the rest is the longest. An account with few of them has a short
 * rest, or none.
 */
const MANY_WAITING = 32;

interface Waiting {
  readonly weight: number;
  readonly resolve: () => void;
}

interface Entry {
  inProgress: number;
  readonly waiting: Set<Waiting>;
}

export class AccountGate {
  readonly #options: AccountGateOptions;
  readonly #accounts = new Map<string, Entry>();

  constructor(options: AccountGateOptions) {
    this.#options = options;
  }

  /** Rejects with `rate_limited` when the account's own work does not make room in time. */
  async run<T>(
    accountId: string,
    weight: number,
    work: () => Promise<T>,
    waitMs = atDifferentTimes(this.#options.waitMsMax),
  ): Promise<T> {
    const entry = await this.#enter(accountId, weight, waitMs);
    const began = performance.now();
    try {
      return await work();
    } finally {
      const restMs = this.#restMs(entry, performance.now() - began);
      if (restMs === 0) this.#leave(accountId, entry, weight);
      else setTimeout(() => this.#leave(accountId, entry, weight), restMs).unref();
    }
  }

  #restMs({ waiting }: Entry, tookMs: number): number {
    const { rest } = this.#options;
    if (!rest?.isUseful()) return 0;
    return Math.min(rest.msMax, tookMs * rest.factor) * Math.min(1, waiting.size / MANY_WAITING);
  }

  async #enter(accountId: string, weight: number, waitMs: number): Promise<Entry> {
    let entry = this.#accounts.get(accountId);
    if (!entry) {
      entry = { inProgress: 0, waiting: new Set() };
      this.#accounts.set(accountId, entry);
    }
    if (entry.waiting.size === 0 && this.#hasRoom(entry, weight)) {
      entry.inProgress += weight;
      return entry;
    }
    if (entry.waiting.size >= this.#options.waitingMax) {
      await delayRefusal();
      throw tooMany();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { weight, resolve };
    const { waiting: queue } = entry;
    queue.add(waiting);
    const stopWaiting = giveUpAfter(waitMs, () => {
      queue.delete(waiting);
      reject(tooMany());
      this.#admit(entry);
    });
    await promise.finally(stopWaiting);
    return entry;
  }

  #leave(accountId: string, entry: Entry, weight: number): void {
    entry.inProgress -= weight;
    this.#admit(entry);
    if (entry.inProgress === 0 && entry.waiting.size === 0) this.#accounts.delete(accountId);
  }

  /** Begins the work that waits, in order, while there is room. */
  #admit(entry: Entry): void {
    for (const next of entry.waiting) {
      if (!this.#hasRoom(entry, next.weight)) break;
      entry.waiting.delete(next);
      entry.inProgress += next.weight;
      next.resolve();
    }
  }

  #hasRoom(entry: Entry, weight: number): boolean {
    if (entry.inProgress === 0) return true;
    const { weightMax } = this.#options;
    return entry.inProgress + weight <= (typeof weightMax === 'number' ? weightMax : weightMax());
  }
}

/** Hundreds of requests that began to wait at the same moment would otherwise be refused at the same moment. */
export function atDifferentTimes(waitMs: number): number {
  return waitMs * (1 - Math.random() / 4);
}

export function tooMany(): ApiError {
  return new ApiError(
    'rate_limited',
    'Too many requests from this account are in progress; try again when they have finished.',
    { retryAfterSeconds: 1 },
  );
}
