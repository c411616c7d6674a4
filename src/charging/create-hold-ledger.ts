/** Connects the hold ledger to its connections, with the limits of charges. */
import { stampedUuid } from '../domain/ids.ts';
import type { Database } from '../store/database.ts';
import {
  postHoldEntries,
  settleHoldEntry,
  type HoldEntry,
} from '../store/holds/post-hold-entries.ts';
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
  return new HoldLedger({
    execute: async (entries) => {
      const nowMs = clock.checkedNowMs();
      const stamped = entries.map((entry, index) => stampedEntry(entry, nowMs, index));
      return postHoldEntries(holdPool, stamped, receiptKey, replayWindow(nowMs));
    },
    settle: async (entry) => {
      const nowMs = clock.checkedNowMs();
      return settleHoldEntry(
        holdPool,
        stampedEntry(entry, nowMs, 0),
        receiptKey,
        replayWindow(nowMs),
      );
    },
    laneCount,
    batchMax: BATCH_MAX,
    queueMax: QUEUE_MAX_BY_DEVELOPER,
    deadlineMs: QUEUE_DEADLINE_MS,
  });
}

/** New holds and captures get their time by Postgres' clock when they are sent, as charges do. */
function stampedEntry(entry: HoldEntry, nowMs: number, index: number): HoldEntry {
  return 'id' in entry ? { ...entry, id: stampedUuid(entry.id, nowMs, index) } : entry;
}
