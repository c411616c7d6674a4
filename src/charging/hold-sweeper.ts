/**
 * Returns the money reserved by expired holds to balances, every second, in the worker. Any number of workers can run
 * it at once, and killing one leaves nothing half done. The workflow `expireHolds` is the fallback.
 */
import type { Database } from '../store/database.ts';
import { expireHolds } from '../store/holds/expire-holds.ts';
import { RepeatedWork } from './repeated-work.ts';

const SWEEP_EVERY_MS = 1_000;

export function startHoldSweeper(
  database: Database,
  onError: (error: unknown) => void,
): RepeatedWork {
  const sweep = async (isStopped: () => boolean) => {
    while (!isStopped() && (await expireHolds(database)).hasMore);
  };
  return new RepeatedWork(SWEEP_EVERY_MS, sweep, onError);
}
