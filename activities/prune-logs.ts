/** The step that prunes logs. Bounded, and safe to repeat or run concurrently. */
import type { Database } from '../src/store/database.ts';
import { pruneLogs, type Pruned } from '../src/store/prune-logs.ts';

export interface LogDeps {
  readonly database: Database;
  /** How long Stripe's events and ours are kept. */
  readonly retentionDays: number;
}

export type LogActivities = ReturnType<typeof createLogActivities>;

export function createLogActivities({ database, retentionDays }: LogDeps) {
  return {
    async pruneOldLogs(): Promise<Pruned> {
      return pruneLogs(database, retentionDays);
    },
  };
}
