/**
 * How many charges a flush may take. A charge waits for the flush in flight and for its own, so long flushes for a busy
 * developer would delay everyone else. A developer with fewer than `shareMax` charges pending counts as
 * light. While a light developer charges beside others, a flush takes at most `shareMax` charges for each
 * waiting developer. Otherwise it takes up to `batchMax`: when one developer charges alone, or when all
 * developers are busy.
 */
export interface FlushSizeOptions {
  readonly batchMax: number;
  /** The most charges for each waiting developer, and the number from which a developer counts as busy for a second. */
  readonly shareMax: number;
}

/** How long flushes stay small after the last charge of a light developer, and how long a developer counts as busy. */
const REMEMBERED_MS = 1_000;

export class FlushSize {
  readonly #options: FlushSizeOptions;
  /** Charges that wait or are in flight, by developer and together. */
  readonly #pending = new Map<string, number>();
  #sum = 0;
  /** Until when each developer counts as busy. */
  readonly #busy = new Map<string, number>();
  #sharedUntil = 0;
  #lastChargeAt = Number.NEGATIVE_INFINITY;

  constructor(options: FlushSizeOptions) {
    this.#options = options;
  }

  /** A charge arrived. */
  enter(developerId: string, nowMs: number): void {
    const own = (this.#pending.get(developerId) ?? 0) + 1;
    this.#pending.set(developerId, own);
    this.#sum += 1;
    this.#lastChargeAt = nowMs;
    const isAlone = own === this.#sum;
    if (own >= this.#options.shareMax) this.#noteBusy(developerId, nowMs);
    else if (!isAlone && !this.#wasBusy(developerId, nowMs)) {
      this.#sharedUntil = nowMs + REMEMBERED_MS;
    }
  }

  /** It was decided or rejected. */
  leave(developerId: string): void {
    const own = (this.#pending.get(developerId) ?? 0) - 1;
    if (own > 0) this.#pending.set(developerId, own);
    else this.#pending.delete(developerId);
    this.#sum -= 1;
  }

  max(developersWaiting: number, nowMs: number): number {
    const { batchMax, shareMax } = this.#options;
    return this.isShared(nowMs) ? Math.min(batchMax, shareMax * developersWaiting) : batchMax;
  }

  /** Whether a light developer charges beside others, or did within the last second. */
  isShared(nowMs: number): boolean {
    return nowMs < this.#sharedUntil;
  }

  /** Whether anybody charged within the last second. */
  isCharging(nowMs: number): boolean {
    return nowMs - this.#lastChargeAt < REMEMBERED_MS;
  }

  #noteBusy(developerId: string, nowMs: number): void {
    if (!this.#busy.has(developerId)) {
      for (const [each, until] of this.#busy) if (until <= nowMs) this.#busy.delete(each);
    }
    this.#busy.set(developerId, nowMs + REMEMBERED_MS);
  }

  #wasBusy(developerId: string, nowMs: number): boolean {
    return (this.#busy.get(developerId) ?? 0) > nowMs;
  }
}
