/**
 * Holds: the statement that places, captures, releases and extends them. Everything that decides about money is in
 * migrations/functions/post_hold_entries.sql; this file passes arrays. list-holds.ts reads holds.
 */
import { OVER_MODES, type OverMode } from '../../domain/hold.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { repayDebts } from '../balance/debts.ts';
import {
  int2Array,
  int4Array,
  int8Array,
  int8ArrayOfHex,
  textArray,
  uuidArray,
} from '../charges/binary-arrays.ts';
import type { ChargeDraft, ReplayWindow } from '../charges/post-charges.ts';
import { sql, type Connection, type Database, type RowParser } from '../database.ts';
import { holdOf, type Hold } from './hold.ts';

/** The hash of an idempotency key and the fingerprint of the request, as in `ChargeDraft`. */
type Identity = Pick<ChargeDraft, 'idempotencyHash' | 'fingerprint'>;
type OfHold = Identity & { readonly holdId: string; readonly developerNumber: number };

/** A change to a hold; ids are UUIDs. */
export type HoldEntry =
  | (ChargeDraft & { readonly kind: 'place'; readonly seconds: number })
  | (OfHold & {
      readonly kind: 'capture';
      /** The id of the charge. */
      readonly id: string;
      /** Null: everything that is left. */
      readonly amountMicros: Micros | null;
      /** Whether the rest is released. */
      readonly isFinal: boolean;
      readonly over: OverMode;
      readonly metadata: string | null;
    })
  | (OfHold & { readonly kind: 'release' })
  /** `seconds` count from now. */
  | (OfHold & { readonly kind: 'extend'; readonly seconds: number });

export type HoldOutcome =
  | {
      /** `replayed`: the idempotency key already did it. The hold is returned in its current state. */
      readonly kind: 'done' | 'replayed';
      readonly hold: Hold;
      /** The charge of a capture. */
      readonly chargeId: string;
      /** The amount placed or captured. */
      readonly amountMicros: Micros;
      /** The balance after the hold was placed or captured. */
      readonly balanceMicros: Micros;
      readonly receiptKey: number;
    }
  /** `requiredMicros` is the amount that the balance had to cover. */
  | {
      readonly kind: 'insufficient';
      /** Null when no hold was placed. */
      readonly consumerId: string | null;
      readonly balanceMicros: Micros;
      readonly requiredMicros: Micros;
    }
  | { readonly kind: 'exceeds_hold'; readonly remainingMicros: Micros }
  | { readonly kind: 'hold_closed'; readonly hold: Hold }
  | { readonly kind: 'unknown_hold' }
  | { readonly kind: 'key_reused' };

interface OutcomeRow {
  readonly ord: number;
  readonly outcome: HoldOutcome['kind'] | 'owing';
  readonly charge_id: string;
  readonly amount: number;
  readonly balance: number;
  readonly signed_by: number;
  readonly hold_id: string | null;
  readonly ledger: number;
  readonly consumer: string;
  readonly tool: string;
  readonly hold_amount: number;
  readonly captured: number;
  readonly remaining: number;
  readonly state: number;
  readonly placed_at: string;
  readonly expires_at: string;
}

/** This hot statement skips the check of result rows, which come from our own function. */
const unchecked: RowParser<OutcomeRow> = {
  '~standard': {
    version: 1,
    vendor: 'farebox',
    validate: (value) => ({ value: value as OutcomeRow }),
  },
};

/**
 * Decides the entries in order, in one commit. The caller ensures that no idempotency hash occurs twice. `owing`: the
 * entry would release money of a consumer with a debt; `settleHoldEntry` decides it.
 */
export async function postHoldEntries(
  database: Database,
  entries: readonly HoldEntry[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<(HoldOutcome | 'owing')[]> {
  const rows = await decide(database, entries, receiptKey, replay, false);
  const outcomes: (HoldOutcome | 'owing')[] = [];
  for (const found of rows) {
    outcomes[found.ord - 1] = found.outcome === 'owing' ? 'owing' : outcomeOf(found);
  }
  return outcomes;
}

/** Decides one entry, and repays the consumer's debts from the money it releases, in one transaction. */
export async function settleHoldEntry(
  database: Database,
  entry: HoldEntry,
  receiptKey: number,
  replay: ReplayWindow,
): Promise<HoldOutcome> {
  return database.transaction(async (tx) => {
    const [found] = await decide(tx, [entry], receiptKey, replay, true);
    if (!found) throw new Error('one entry sent, none decided');
    if (found.hold_id !== null) {
      await repayDebts(tx, [{ ledger: found.ledger, consumerId: found.consumer }]);
    }
    return outcomeOf(found);
  });
}

const NO_ID = '00000000-0000-0000-0000-000000000000';
const KINDS = { place: 1, capture: 2, release: 3, extend: 4 } as const;

async function decide(
  connection: Connection,
  entries: readonly HoldEntry[],
  receiptKey: number,
  replay: ReplayWindow,
  settlesDebts: boolean,
): Promise<readonly OutcomeRow[]> {
  const placed = <T>(read: (entry: HoldEntry & { kind: 'place' }) => T, other: T) =>
    entries.map((entry) => (entry.kind === 'place' ? read(entry) : other));
  const captured = <T>(read: (entry: HoldEntry & { kind: 'capture' }) => T, other: T) =>
    entries.map((entry) => (entry.kind === 'capture' ? read(entry) : other));
  const columns = [
    int2Array(entries.map(({ kind }) => KINDS[kind])),
    uuidArray(entries.map((entry) => ('id' in entry ? entry.id : NO_ID))),
    uuidArray(entries.map((entry) => ('holdId' in entry ? entry.holdId : NO_ID))),
    int2Array(placed(({ ledger }) => ledger, 0)),
    uuidArray(placed(({ consumerId }) => consumerId, NO_ID)),
    int4Array(entries.map(({ developerNumber }) => developerNumber)),
    textArray(placed(({ tool }) => tool, '')),
    int8Array(entries.map((entry) => ('amountMicros' in entry ? (entry.amountMicros ?? 0) : 0))),
    int4Array(entries.map((entry) => ('seconds' in entry ? entry.seconds : 0))),
    int2Array(captured(({ isFinal }) => Number(isFinal), 1)),
    int2Array(captured(({ over }) => OVER_MODES.indexOf(over), 0)),
    int8ArrayOfHex(entries.map((e) => e.idempotencyHash && e.idempotencyHash.slice(0, 16))),
    int8ArrayOfHex(
      entries.map((e) => e.idempotencyHash && e.idempotencyHash.slice(16) + (e.fingerprint ?? '')),
    ),
    textArray(entries.map((entry) => ('metadata' in entry ? entry.metadata : null))),
  ];
  const rows = await connection.any(sql.prepared('post_hold_entries', unchecked)`
    select * from farebox.post_hold_entries(
      ${sql.join(
        columns.map((column) => sql.binary(column)),
        sql.fragment`, `,
      )},
      ${receiptKey}::int2, ${replay.fromId}::uuid, ${replay.toId}::uuid, ${settlesDebts}::boolean)
  `);
  if (rows.length !== entries.length) {
    throw new Error(`${entries.length} entries asked, ${rows.length} decided`);
  }
  return rows;
}

function outcomeOf(found: OutcomeRow): HoldOutcome {
  const { outcome, amount, balance } = found;
  switch (outcome) {
    case 'done':
    case 'replayed':
      return {
        kind: outcome,
        hold: shownHold(found),
        chargeId: found.charge_id,
        amountMicros: asMicros(amount),
        balanceMicros: asMicros(balance),
        receiptKey: found.signed_by,
      };
    case 'insufficient':
      return {
        kind: outcome,
        consumerId: found.consumer,
        balanceMicros: asMicros(balance),
        requiredMicros: asMicros(amount),
      };
    case 'exceeds_hold':
      return { kind: outcome, remainingMicros: asMicros(amount) };
    case 'hold_closed':
      return { kind: outcome, hold: shownHold(found) };
    case 'unknown_hold':
    case 'key_reused':
      return { kind: outcome };
    case 'owing':
      throw new Error('a debt was not repaid');
  }
}

function shownHold(found: OutcomeRow): Hold {
  if (found.hold_id === null) throw new Error('a hold was decided and not found');
  return holdOf({
    id: found.hold_id,
    consumerId: found.consumer,
    tool: found.tool,
    amountMicros: found.hold_amount,
    capturedMicros: found.captured,
    remainingMicros: found.remaining,
    state: found.state,
    placedAt: found.placed_at,
    expiresAt: found.expires_at,
  });
}
