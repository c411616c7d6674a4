/**
 * Rolls up earnings in the API process during long outages of the workers or Temporal, so that reads of the tails stay
 * fast. While the schedule runs, this finds nothing to do.
 */
import type { Database } from '../store/database.ts';
import { areTailsLong, rollUp } from '../store/earnings/rollups.ts';
import { RepeatedWork } from './repeated-work.ts';

const LOOK_EVERY_MS = 10_000;

export function startRollupFallback(
  database: Database,
  onError: (error: unknown) => void,
): RepeatedWork {
  const shorten = async (isStopped: () => boolean) => {
    if (!(await areTailsLong(database))) return;
    while (!isStopped() && (await rollUp(database)).hasMore);
  };
  return new RepeatedWork(LOOK_EVERY_MS, shorten, onError);
}
