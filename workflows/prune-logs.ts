/** Deletes old rows of logs, step by step, so that they do not grow forever. A schedule starts it once a day. */
import { continueAsNew, proxyActivities } from '@temporalio/workflow';
import type { LogActivities } from '../activities/logs.ts';

// Retries without limit: while a step fails no other run starts, and the UI shows the error.
const { pruneOldLogs } = proxyActivities<LogActivities>({
  startToCloseTimeout: '15s',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
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
