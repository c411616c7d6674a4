/**
 * Moves earnings from the tails that charges append to into the sums that developers read, step by step. A schedule
 * starts it every minute. A backlog of days is worked off in a chain of runs with short histories.
 */
import { continueAsNew, proxyActivities } from '@temporalio/workflow';
import type { RollUpEarningsActivities } from '../activities/roll-up-earnings.ts';
import { UNTIL_IT_SUCCEEDS } from './until-it-succeeds.ts';

// While a step fails, no other run starts.
const { rollUp } = proxyActivities<RollUpEarningsActivities>({
  ...UNTIL_IT_SUCCEEDS,
  summary: 'Add recent charges to the sums of earnings',
});

/** Each step takes six history events; together they move up to three hundred thousand rows. */
const STEPS_PER_RUN = 10;

export async function rollUpEarnings(): Promise<void> {
  for (let step = 0; step < STEPS_PER_RUN; step += 1) {
    const { hasMore } = await rollUp();
    if (!hasMore) return;
  }
  await continueAsNew<typeof rollUpEarnings>();
}
