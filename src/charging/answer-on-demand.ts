/**
 * Test mode: delays or drops the answer to a charge or hold that was made, if its amount asks for that, as a
 * bad network would. A repeat with the same idempotency key is answered as usual.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { LATE_MICROS, LATE_MS, LOST_MICROS } from '../domain/magic-amounts.ts';
import type { Requester } from './batcher.ts';
import { ChargeFailure } from './charge-failure.ts';

/** How often a late answer checks whether somebody still waits for it. */
const LOOK_MS = 250;

export async function answerOnDemand(
  { amountMicros }: { readonly amountMicros: number },
  requester: Requester,
): Promise<void> {
  if (amountMicros === LOST_MICROS) {
    throw new ChargeFailure('lost_on_demand', 'In test mode, this amount loses the response.');
  }
  if (amountMicros !== LATE_MICROS) return;
  const until = performance.now() + LATE_MS;
  while (performance.now() < until && !requester.isAbandoned()) {
    await delay(LOOK_MS, undefined, { ref: false });
  }
}
