/**
 * A clock for what ends in the service. The monotonic clock alone stands still while a laptop or a virtual machine is
 * suspended, and the wall clock alone may be set back. This one is monotonic, and moves ahead with the wall clock.
 */

/** Less is the difference of two readings, not a suspension. A lease ends much earlier than the service ends it. */
const AHEAD_MS_MIN = 1_000;

/** What the wall clock is ahead of the monotonic clock: the least since it last jumped ahead. */
let aheadMs = Date.now() - performance.now();
/** The sum of these jumps. */
let jumpedMs = 0;

/** Milliseconds from an arbitrary time. It may run ahead when the wall clock is set, and never falls behind. */
export function elapsedMs() {
  const monotonicMs = performance.now();
  const jumpMs = Date.now() - monotonicMs - aheadMs;
  if (jumpMs >= AHEAD_MS_MIN) jumpedMs += jumpMs;
  if (jumpMs >= AHEAD_MS_MIN || jumpMs < 0) aheadMs += jumpMs;
  return monotonicMs + jumpedMs;
}
