/** The step that prunes logs. Bounded, and safe to repeat or run concurrently. */
import type { Database } from '../src/store/database.ts';
import { pruneLogs, type Pruned } from '../src/store/prune-logs.ts';

export interface PruneLogsDeps {
  readonly database: Database;
  /** How long Stripe's events and ours are kept. */
  readonly retentionDays: number;
}

export type PruneLogsActivities = ReturnType<typeof createPruneLogsActivities>;

export function createPruneLogsActivities({ database, retentionDays }: PruneLogsDeps) {
  return {
    async pruneOldLogs(): Promise<Pruned> {
      return pruneLogs(database, retentionDays);
    },
  };
}
