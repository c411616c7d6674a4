/** Connects the hold ledger to its connections, with the limits of charges. */
import type { Database } from '../store/database.ts';
import { postHoldEntries, settleHoldEntry } from '../store/holds/post-hold-entries.ts';
import type { DatabaseClock } from './database-clock.ts';
import { HoldLedger } from './hold-ledger.ts';
import { BATCH_MAX, QUEUE_DEADLINE_MS, QUEUE_MAX_BY_DEVELOPER } from './limits.ts';
import { replayWindow } from './replay-window.ts';

/** `receiptKey` is the number of the signing secret. */
export function createHoldLedger(
  holdPool: Database,
  laneCount: number,
  receiptKey: number,
  clock: DatabaseClock,
): HoldLedger {
  const window = () => replayWindow(clock.checkedNowMs());
  return new HoldLedger({
    execute: async (entries) => postHoldEntries(holdPool, entries, receiptKey, window()),
    settle: async (entry) => settleHoldEntry(holdPool, entry, receiptKey, window()),
    laneCount,
    batchMax: BATCH_MAX,
    queueMax: QUEUE_MAX_BY_DEVELOPER,
    deadlineMs: QUEUE_DEADLINE_MS,
  });
}
