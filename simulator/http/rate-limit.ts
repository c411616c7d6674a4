/** Stripe's limit of requests per second, when a control sets one. Kept in memory: a restart removes it. */
export class RateLimit {
  /** Undefined: no limit. */
  perSecond: number | undefined;
  #second = 0;
  #count = 0;

  /** Whether this request is one too many. */
  refuses(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1_000);
    this.#count = second === this.#second ? this.#count + 1 : 1;
    this.#second = second;
    return this.perSecond !== undefined && this.#count > this.perSecond;
  }
}
