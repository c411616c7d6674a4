/**
 * The two batchers, each with the statements of its drafts and connections of its own, so that neither waits for the
 * other: of charges, and of entries, which are holds, their captures and releases, and the charges that come with them
 * in a batch. A statement is sent on the connection of a lane, with ids by Postgres' clock, and with the time within
 * which an idempotency key is looked up.
 */
import { randomUUID } from 'node:crypto';
import { idsAt } from '../domain/ids.ts';
import { findLockedConsumers } from '../store/balance/consumers.ts';
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
  type ChargeOutcome,
  type ReplayWindow,
} from '../store/charges/post-charges.ts';
import { postSpends } from '../store/charges/post-spends.ts';
import type { Connection, Database } from '../store/database.ts';
import type { LedgerEntry } from '../store/holds/decide-entries.ts';
import type { Outcomes } from '../store/holds/hold-entry.ts';
import {
  findLockedHolds,
  postEntries,
  postFittingEntries,
} from '../store/holds/post-hold-entries.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { Batcher, type Batchable, type BatcherOptions, type Requester } from './batcher.ts';
import type { DatabaseClock } from './database-clock.ts';
import { BATCHER_LIMITS } from './limits.ts';
import { replayWindow } from './replay-window.ts';
import { createTracedBatcher } from './traced-batcher.ts';

interface BatcherDeps extends Pick<
  BatcherOptions<never, never>,
  'onFailure' | 'onFlush' | 'laneCount'
> {
  /** Has a connection for each lane, exceptions included. */
  readonly pool: Database;
  /** The number of the signing secret. */
  readonly receiptKey: number;
  readonly clock: DatabaseClock;
  readonly tracing?: Tracing | undefined;
}

export type ChargeBatcher = Batcher<ChargeDraft, ChargeOutcome>;

export function createChargeBatcher(deps: BatcherDeps): ChargeBatcher {
  return createLedgerBatcher<ChargeDraft, ChargeOutcome>(deps, {
    spanName: 'flush charges',
    payerOf: ({ consumerId }) => consumerId,
    execute: postFittingCharges,
    decide: decideCharges,
    findLocked: findLockedConsumers,
  });
}

/** Only `post_entries_2` counts budgets. It is slower, so plain charges do not use it. */
const decideCharges: LedgerStatement<ChargeDraft, ChargeOutcome> = (
  connection,
  drafts,
  ...others
) =>
  drafts.some(({ spend }) => spend !== null)
    ? postSpends(connection, drafts, ...others)
    : postCharges(connection, drafts, ...others);

/** The outcome is of the entry's kind. */
export interface EntryBatcher {
  /** Entries that wait for a flush. */
  readonly waiting: number;
  post<Entry extends LedgerEntry>(
    entry: Entry,
    requester: Requester,
  ): Promise<Outcomes[Entry['kind']]>;
}

/** It has the limits of charges. */
export function createEntryBatcher(deps: BatcherDeps): EntryBatcher {
  const batcher = createLedgerBatcher<LedgerEntry, Outcomes[LedgerEntry['kind']]>(deps, {
    spanName: 'flush holds',
    payerOf: (entry) => ('consumerId' in entry ? entry.consumerId : entry.holdId),
    execute: postFittingEntries,
    decide: postEntries,
    findLocked,
  });
  return batcher as EntryBatcher;
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

type LedgerStatement<Draft, Outcome> = (
  connection: Connection,
  drafts: readonly Draft[],
  receiptKey: number,
  replay: ReplayWindow,
) => Promise<Outcome[]>;

interface LedgerStatements<Draft extends Batchable, Outcome> extends Pick<
  BatcherOptions<Draft, Outcome>,
  'payerOf'
> {
  /** The name of its spans. */
  readonly spanName: string;
  readonly execute: LedgerStatement<Draft, Outcome | undefined>;
  readonly decide: LedgerStatement<Draft, Outcome>;
  readonly findLocked: (
    connection: Connection,
    drafts: readonly Draft[],
  ) => Promise<ReadonlySet<string>>;
}

function createLedgerBatcher<Draft extends Batchable & Sent, Outcome>(
  { pool, receiptKey, clock, tracing, ...deps }: BatcherDeps,
  { spanName, payerOf, execute, decide, findLocked: find }: LedgerStatements<Draft, Outcome>,
): Batcher<Draft, Outcome> {
  const send =
    <Result>(statement: LedgerStatement<Draft, Result>) =>
    async (drafts: readonly Draft[], onSent: () => void) => {
      // Here too, because an error inside would destroy the connection.
      clock.checkedNowMs();
      return pool.connect((connection) => {
        const nowMs = clock.checkedNowMs();
        giveIds(drafts, nowMs);
        onSent();
        return statement(connection, drafts, receiptKey, replayWindow(nowMs));
      });
    };
  const options: BatcherOptions<Draft, Outcome> = {
    payerOf,
    execute: send(execute),
    decide: send(decide),
    findLocked: (drafts) => find(pool, drafts),
    ...deps,
    ...BATCHER_LIMITS,
  };
  return tracing ? createTracedBatcher(options, spanName, tracing) : new Batcher(options);
}

/** The id of a charge or hold that has not been sent yet. */
export const NOT_SENT = '';

type Sent =
  | { id: string; readonly consumerId: string }
  /** A capture: the id of its charge. */
  | { id: string; readonly holdId: string }
  /** A release or an extension needs no id. */
  | { readonly holdId: string };

/**
 * Gives charges and holds their ids when they are sent: so the order of ids is the order of positions, to within what a
 * statement may wait (src/store/balance/spent.ts). `nowMs` is the current time by Postgres' clock. An entry that
 * is sent again gets a new id.
 */
function giveIds(entries: readonly Sent[], nowMs: number): void {
  const idOf = idsAt(nowMs);
  let index = 0;
  for (const entry of entries) {
    // The id of a hold ends like its consumer's.
    if ('consumerId' in entry) entry.id = idOf(index, entry.consumerId, randomUUID());
    else if ('id' in entry) entry.id = idOf(index, entry.holdId, randomUUID());
    index += 1;
  }
}
