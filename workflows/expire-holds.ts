/**
 * A fallback for the sweep of holds that each worker runs every second. A schedule starts it once a minute; it usually
 * finds nothing to do.
 */
import { continueAsNew, proxyActivities } from '@temporalio/workflow';
import type { ExpireHoldsActivities } from '../activities/expire-holds.ts';
import { UNTIL_IT_SUCCEEDS } from './until-it-succeeds.ts';

// While a step fails, no other run starts.
const { sweepHolds } = proxyActivities<ExpireHoldsActivities>({
  ...UNTIL_IT_SUCCEEDS,
  summary: 'Release expired holds',
});

/** Six events of history each. */
const STEPS_PER_RUN = 10;

export async function expireHolds(): Promise<void> {
  for (let step = 0; step < STEPS_PER_RUN; step += 1) {
    const { hasMore } = await sweepHolds();
    if (!hasMore) return;
  }
  await continueAsNew<typeof expireHolds>();
}
