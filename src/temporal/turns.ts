/**
 * So many at a time, in the order in which they came. Who would have to wait longer than he can is turned
 * away, and whoever takes a turn gives it back.
 */
export class Turns {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(atOnceMax: number) {
    this.#free = atOnceMax;
  }

  /** Whether it was one's turn in time; then the next step is the work, and `giveBack` after it. */
  async take(timeoutMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const come = () => resolve(true);
    const timer = setTimeout(() => {
      this.#waiting.delete(come);
      resolve(false);
    }, timeoutMs);
    this.#waiting.add(come);
    const isCome = await promise;
    clearTimeout(timer);
    return isCome;
  }

  giveBack(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
