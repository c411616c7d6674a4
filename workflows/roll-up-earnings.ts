/**
 * Empties the tails that charges append to into the sums that developers read, step by step. A schedule
 * starts it every few seconds; one that finds days of work goes on until it is done, in runs of short history.
 */
import { continueAsNew, proxyActivities } from '@temporalio/workflow';
import type { RollupActivities } from '../activities/rollups.ts';

// Without end: while a step fails no other run begins, and the UI shows what it met.
const { rollUp } = proxyActivities<RollupActivities>({
  startToCloseTimeout: '15s',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  summary: 'Move a part of the tails into the sums',
});

/** Six events of history each, and up to a hundred thousand rows in all. */
const STEPS_PER_RUN = 10;

export async function rollUpEarnings(): Promise<void> {
  for (let step = 0; step < STEPS_PER_RUN; step += 1) {
    const { hasMore } = await rollUp();
    if (!hasMore) return;
  }
  await continueAsNew<typeof rollUpEarnings>();
}
