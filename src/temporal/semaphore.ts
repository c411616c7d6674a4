/**
 * A first-in, first-out semaphore. Callers that cannot get a slot before their timeout are turned away; the others must
 * release theirs.
 */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(atOnceMax: number) {
    this.#free = atOnceMax;
  }

  /** Resolves to whether the caller got a slot in time, and must `release` it after its work. */
  async acquire(timeoutMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const grant = () => resolve(true);
    const timer = setTimeout(() => {
      this.#waiting.delete(grant);
      resolve(false);
    }, timeoutMs);
    this.#waiting.add(grant);
    const isGranted = await promise;
    clearTimeout(timer);
    return isGranted;
  }

  release(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
