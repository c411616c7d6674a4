/** For tests that need the hour or the UTC day to stay the same, as calendar windows turn by themselves. */
import { setTimeout as delay } from 'node:timers/promises';
import { DAY_MS, HOUR_MS } from '../../src/domain/durations.ts';

/** Longer than such a test takes at its usual size. */
const LEFT_MS_MIN = 120_000;

/** Waits for the next hour if this one, and perhaps with it the day, the week or the month, ends within two minutes. */
export const untilHourIsYoung = (): Promise<void> => untilYoung(HOUR_MS);

/** A hook that waits for the next UTC day if this one ends within two minutes. */
export const untilDayIsYoung = (): Promise<void> => untilYoung(DAY_MS);

async function untilYoung(spanMs: number): Promise<void> {
  const leftMs = spanMs - (Date.now() % spanMs);
  if (leftMs < LEFT_MS_MIN) await delay(leftMs + 1);
}
