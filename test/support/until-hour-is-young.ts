/** For tests whose model does not know that the calendar windows of budgets turn by themselves. */
import { setTimeout as delay } from 'node:timers/promises';

const HOUR_MS = 3_600_000;
/** Longer than such a test takes at its usual size. */
const LEFT_MS_MIN = 120_000;

/** For a mocha timeout: the wait, and twice as long for the rest of the hook. */
export const HOUR_IS_YOUNG_MS_MAX = 3 * LEFT_MS_MIN;

/** Waits for the next hour if this one, and perhaps with it the day, the week or the month, ends within two minutes. */
export async function untilHourIsYoung(): Promise<void> {
  const leftMs = HOUR_MS - (Date.now() % HOUR_MS);
  if (leftMs < LEFT_MS_MIN) await delay(leftMs + 1);
}
