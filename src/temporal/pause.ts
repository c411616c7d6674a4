/** The pause between two rounds of a loop that runs until it is stopped. */
import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after this time, or as soon as `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
