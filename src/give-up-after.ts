/**
 * A limit for a wait. While the process is suspended, for example because its machine is paused or busy, what it is
 * waiting for may arrive without being read. So the wait is extended by the time for which the process stood still at
 * its end, to at most twice its length.
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
