/** Creates the partitions of the coming months, so that no month begins without one. Started by a schedule. */
import { proxyActivities } from '@temporalio/workflow';
import type { EnsurePartitionsActivities } from '../activities/ensure-partitions.ts';

// Retries without limit: while traffic keeps a partition from being created, the UI shows its month.
const { ensurePartitions: ensure } = proxyActivities<EnsurePartitionsActivities>({
  // Rows that have to move first are copied meanwhile: about a minute for some millions.
  startToCloseTimeout: '30m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1m', backoffCoefficient: 2, maximumInterval: '1h' },
  summary: 'Create missing partitions',
});

export async function ensurePartitions(): Promise<readonly string[]> {
  return ensure();
}
