/** Deletes old rows of logs, step by step, so that they do not grow forever. A schedule starts it once a day. */
import { continueAsNew, proxyActivities } from '@temporalio/workflow';
import type { PruneLogsActivities } from '../activities/prune-logs.ts';
import { UNTIL_IT_SUCCEEDS } from './until-it-succeeds.ts';

// While a step fails, no other run starts.
const { pruneOldLogs } = proxyActivities<PruneLogsActivities>({
  ...UNTIL_IT_SUCCEEDS,
  summary: 'Delete old log rows',
});

/** Each step takes six history events; together they delete up to a million rows. */
const STEPS_PER_RUN = 100;

export async function pruneLogs(): Promise<void> {
  for (let step = 0; step < STEPS_PER_RUN; step += 1) {
    const { hasMore } = await pruneOldLogs();
    if (!hasMore) return;
  }
  await continueAsNew<typeof pruneLogs>();
}
