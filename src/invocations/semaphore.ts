/**
 * A FIFO semaphore. A caller that does not get a slot before its timeout is turned away; every caller that takes a
 * slot gives it back.
 */
import { giveUpAfter } from '../give-up-after.ts';

export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Whether the caller got a slot in time. It must then call `release` when its work is done. */
  async acquire(timeoutMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const admit = () => resolve(true);
    const stopWaiting = giveUpAfter(timeoutMs, () => {
      this.#waiting.delete(admit);
      resolve(false);
    });
    this.#waiting.add(admit);
    const isAcquired = await promise;
    stopWaiting();
    return isAcquired;
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
