/**
 * Gives back what expired holds reserve, each second, in the worker. Any number of workers do it at once, and one that is
 * killed leaves nothing half done. The workflow `expireHolds` is the net under it.
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
