/** Changes to holds and their outcomes. decide-entries.ts runs the statement, list-holds.ts reads holds. */
import type { OverMode } from '../../domain/hold.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { repayDebts } from '../balance/debts.ts';
import {
  approvalRequired,
  limitReached,
  type ApprovalRequired,
  type LimitReached,
} from '../budgets/budget.ts';
import type { ChargeDraft, ReplayWindow } from '../charges/post-charges.ts';
import type { Database } from '../database.ts';
import { holdOf, type Hold } from './hold.ts';
import { decideEntries, type EntryRow } from './decide-entries.ts';

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
  | LimitReached
  | ApprovalRequired
  /** The budget of the spend key was closed. */
  | { readonly kind: 'key_closed' }
  | { readonly kind: 'exceeds_hold'; readonly remainingMicros: Micros }
  | { readonly kind: 'hold_closed'; readonly hold: Hold }
  | { readonly kind: 'unknown_hold' }
  | { readonly kind: 'key_reused' };

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
  const rows = await decideEntries(database, entries, receiptKey, replay, false);
  const outcomes: (HoldOutcome | 'owing')[] = [];
  for (const found of rows) {
    const entry = entries[found.ord - 1];
    outcomes[found.ord - 1] = found.outcome === 'owing' ? 'owing' : outcomeOf(found, entry);
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
    const [found] = await decideEntries(tx, [entry], receiptKey, replay, true);
    if (!found) throw new Error('one entry asked, none decided');
    if (found.hold_id !== null) {
      await repayDebts(tx, [{ ledger: found.ledger, consumerId: found.consumer }]);
    }
    return outcomeOf(found, entry);
  });
}

function outcomeOf(found: EntryRow, entry: HoldEntry | undefined): HoldOutcome {
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
    case 'limit_reached':
      return limitReached(found);
    case 'approval_required':
      return approvalRequired(found, entry?.kind === 'place' ? entry.developerId : '');
    case 'exceeds_hold':
      return { kind: outcome, remainingMicros: asMicros(amount) };
    case 'hold_closed':
      return { kind: outcome, hold: shownHold(found) };
    case 'key_closed':
    case 'unknown_hold':
    case 'key_reused':
      return { kind: outcome };
    case 'owing':
      throw new Error('a debt was not repaid');
  }
}

function shownHold(found: EntryRow): Hold {
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
