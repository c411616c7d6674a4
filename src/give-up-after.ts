/**
 * A limit for a wait. While the process stands still, because its machine is paused or busy for example, what it waits
 * for may have arrived without being read. So it waits longer by the time that it stood still at the end,
 * twice as long at most.
 */

/** Calls `giveUp` after `ms` milliseconds. Call the result when the wait has ended. */
export function giveUpAfter(ms: number, giveUp: () => void): () => void {
  const dueAt = performance.now() + ms;
  let timer = setTimeout(() => {
    // A timer may also be early, by less than a millisecond.
    const lateMs = Math.max(0, performance.now() - dueAt);
    // Even if it is not late: Node reads what has arrived between two timers.
    timer = setTimeout(giveUp, Math.min(lateMs, ms));
  }, ms);
  return () => clearTimeout(timer);
}

/** The answer; undefined if it fails or does not come within `ms` milliseconds. */
export function answerWithin<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const stopWaiting = giveUpAfter(ms, () => resolve(undefined));
  answer.then(resolve, () => resolve(undefined));
  return promise.finally(stopWaiting);
}
