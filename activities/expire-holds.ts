/** The step that releases expired holds. Bounded, and safe to repeat or run concurrently. */
import type { Database } from '../src/store/database.ts';
import { expireHolds, type Expired } from '../src/store/holds/expire-holds.ts';

export type ExpireHoldsActivities = ReturnType<typeof createExpireHoldsActivities>;

export function createExpireHoldsActivities({ database }: { readonly database: Database }) {
  return {
    async sweepHolds(): Promise<Expired> {
      return expireHolds(database);
    },
  };
}
