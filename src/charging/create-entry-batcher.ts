/**
 * The batcher of entries: holds, their captures and releases, and the charges that come with them in a batch. It has
 * connections and lanes of its own, and the limits of charges, so that neither waits for the other.
 */
import { findLockedConsumers } from '../store/balance/consumers.ts';
import type { ChargeOutcome, ReplayWindow } from '../store/charges/post-charges.ts';
import type { Connection, Database } from '../store/database.ts';
import type { ChargeEntry, LedgerEntry } from '../store/holds/decide-entries.ts';
import type { HoldEntry, HoldOutcome } from '../store/holds/hold-entry.ts';
import {
  findLockedHolds,
  postEntries,
  settleEntries,
  type EntryOutcome,
} from '../store/holds/post-hold-entries.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { Batcher, type BatcherOptions, type Flush, type Requester } from './batcher.ts';
import type { DatabaseClock } from './database-clock.ts';
import { giveIds } from './give-ids.ts';
import { BATCHER_LIMITS } from './limits.ts';
import { replayWindow } from './idempotency.ts';
import { createTracedBatcher } from './traced-batcher.ts';

/** The outcome is of the entry's kind. */
export interface EntryBatcher {
  /** Entries that wait for a flush. */
  readonly waiting: number;
  post(entry: HoldEntry, requester: Requester): Promise<HoldOutcome>;
  post(entry: ChargeEntry, requester: Requester): Promise<ChargeOutcome>;
}

type EntryStatement<Outcome> = (
  connection: Connection,
  entries: readonly LedgerEntry[],
  receiptKey: number,
  replay: ReplayWindow,
) => Promise<Outcome[]>;

/** `holdPool` has a connection for each lane, exceptions included. `receiptKey` is the number of the signing secret. */
export function createEntryBatcher(
  holdPool: Database,
  laneCount: number,
  receiptKey: number,
  clock: DatabaseClock,
  onFailure: (error: unknown) => void,
  onFlush: ((flush: Flush) => void) | undefined,
  tracing?: Tracing,
): EntryBatcher {
  const send =
    <Outcome>(statement: EntryStatement<Outcome>) =>
    (entries: readonly LedgerEntry[], onSent: () => void) =>
      holdPool.connect((connection) => {
        const nowMs = clock.checkedNowMs();
        giveIds(entries, nowMs);
        onSent();
        return statement(connection, entries, receiptKey, replayWindow(nowMs));
      });
  const options: BatcherOptions<LedgerEntry, EntryOutcome> = {
    payerOf: (entry) => ('consumerId' in entry ? entry.consumerId : entry.holdId),
    execute: send(postEntries),
    decide: send(settleEntries),
    findLocked: (entries) => findLocked(holdPool, entries),
    onFailure,
    onFlush,
    laneCount,
    ...BATCHER_LIMITS,
  };
  const batcher = tracing
    ? createTracedBatcher(options, 'flush holds', tracing)
    : new Batcher(options);
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
