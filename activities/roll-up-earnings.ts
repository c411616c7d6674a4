/** The step that moves earnings from the tails into sums. Bounded, and safe to repeat or run concurrently. */
import type { Database } from '../src/store/database.ts';
import { rollUp, type RollupStep } from '../src/store/earnings/rollups.ts';

export type RollUpEarningsActivities = ReturnType<typeof createRollUpEarningsActivities>;

export function createRollUpEarningsActivities({ database }: { readonly database: Database }) {
  return {
    async rollUp(): Promise<RollupStep> {
      return rollUp(database);
    },
  };
}
