/**
 * How many charges a flush may take. A charge waits for the flush in flight and for its own, so a developer with hundreds
 * of charges makes every other one wait for long flushes. While a developer who has few charges makes some, a flush takes
 * few for each developer that waits. It is as large as can be when one developer charges alone, when all have many
 * charges, and when many developers wait.
 */
export interface FlushSizeOptions {
  readonly batchMax: number;
  /** Charges for each waiting developer. A developer who has fewer pending, now and in the last second, has few. */
  readonly shareMax: number;
}

/** How long flushes stay small after the last charge of a developer with few, and how long many are remembered. */
const REMEMBERED_MS = 1_000;

export class FlushSize {
  readonly #options: FlushSizeOptions;
  /** Charges that wait or are in flight, by developer and together. */
  readonly #pending = new Map<string, number>();
  #sum = 0;
  /** Until when developers count as having many. */
  readonly #many = new Map<string, number>();
  #sharedUntil = 0;

  constructor(options: FlushSizeOptions) {
    this.#options = options;
  }

  /** A charge arrived. */
  enter(developerId: string, nowMs: number): void {
    const own = (this.#pending.get(developerId) ?? 0) + 1;
    this.#pending.set(developerId, own);
    this.#sum += 1;
    const isAlone = own === this.#sum;
    if (own >= this.#options.shareMax) this.#noteMany(developerId, nowMs);
    else if (!isAlone && !this.#hadMany(developerId, nowMs)) {
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
    return nowMs < this.#sharedUntil ? Math.min(batchMax, shareMax * developersWaiting) : batchMax;
  }

  #noteMany(developerId: string, nowMs: number): void {
    if (!this.#many.has(developerId)) {
      for (const [each, until] of this.#many) if (until <= nowMs) this.#many.delete(each);
    }
    this.#many.set(developerId, nowMs + REMEMBERED_MS);
  }

  #hadMany(developerId: string, nowMs: number): boolean {
    return (this.#many.get(developerId) ?? 0) > nowMs;
  }
}
