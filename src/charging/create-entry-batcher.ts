/**
 * The batcher of entries: holds, their captures and releases, and the charges that come with them in a batch. It has
 * connections and lanes of its own, and the limits of charges, so that neither waits for the other.
 */
import { findLockedConsumers } from '../store/balance/consumers.ts';
import type { ChargeOutcome } from '../store/charges/post-charges.ts';
import type { Connection } from '../store/database.ts';
import type { ChargeEntry, LedgerEntry } from '../store/holds/decide-entries.ts';
import type { HoldEntry, HoldOutcome } from '../store/holds/hold-entry.ts';
import {
  findLockedHolds,
  postFittingEntries,
  postEntries,
  type EntryOutcome,
} from '../store/holds/post-hold-entries.ts';
import type { Requester } from './batcher.ts';
import { createLedgerBatcher, type BatcherDeps } from './ledger-batcher.ts';

/** The outcome is of the entry's kind. */
export interface EntryBatcher {
  /** Entries that wait for a flush. */
  readonly waiting: number;
  post(entry: HoldEntry, requester: Requester): Promise<HoldOutcome>;
  post(entry: ChargeEntry, requester: Requester): Promise<ChargeOutcome>;
}

export function createEntryBatcher(deps: BatcherDeps): EntryBatcher {
  const batcher = createLedgerBatcher<LedgerEntry, EntryOutcome>(deps, {
    spanName: 'flush holds',
    payerOf: (entry) => ('consumerId' in entry ? entry.consumerId : entry.holdId),
    execute: postFittingEntries,
    decide: postEntries,
    findLocked,
  });
  return batcher as unknown as EntryBatcher;
}

async function findLocked(
  connection: Connection,
  entries: readonly LedgerEntry[],
): Promise<ReadonlySet<string>> {
  const paying = entries.filter((entry) => 'consumerId' in entry);
  const ofHolds = entries.filter((entry) => 'holdId' in entry);
  const consumers = paying.length > 0 ? await findLockedConsumers(connection, paying) : [];
  const holds = ofHolds.length > 0 ? await findLockedHolds(connection, ofHolds) : [];
  return new Set([...consumers, ...holds]);
}
