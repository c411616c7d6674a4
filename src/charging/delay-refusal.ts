/** Delays refusals, so that a flood of refused requests cannot keep the process busy. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * At least this long, so that a client that sends the next request as soon as the last is answered cannot
 * keep the process busy with refusals. The response tells it to wait for a second anyway.
 */
const REFUSAL_MS = 1_000;

/** Before a refusal. Hundreds of them at the same moment would hold the event loop for tens of milliseconds. */
export function delayRefusal(): Promise<void> {
  return delay(REFUSAL_MS * (1 + Math.random() / 2));
}
