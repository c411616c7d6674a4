/** Makes the partitions of the coming months, so that no month begins without one. A schedule starts it. */
import { proxyActivities } from '@temporalio/workflow';
import type { PartitionActivities } from '../activities/partitions.ts';

// Without end: while traffic does not let a month be made, the UI shows which.
const { ensurePartitions: ensure } = proxyActivities<PartitionActivities>({
  startToCloseTimeout: '1m',
  retry: { initialInterval: '1m', backoffCoefficient: 2, maximumInterval: '1h' },
  summary: 'Make the partitions that are missing',
});

export async function ensurePartitions(): Promise<readonly string[]> {
  return ensure();
}
