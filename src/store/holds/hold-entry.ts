/** Changes to holds, and their outcomes. */
import type { OverMode } from '../../domain/hold.ts';
import type { Micros } from '../../domain/money.ts';
import type { ApprovalRequired, LimitReached } from '../budgets/budget.ts';
import type { OptionalIdentity } from '../charges/identity.ts';
import type { ChargeDraft, ChargeOutcome } from '../charges/post-charges.ts';
import type { Hold } from './hold.ts';

export type OfHold = OptionalIdentity &
  Pick<ChargeDraft, 'developerId' | 'developerNumber'> & { readonly holdId: string };

/** A change to a hold; ids are UUIDs. */
export type HoldEntry =
  | (ChargeDraft & { readonly kind: 'place'; readonly seconds: number })
  | (OfHold & {
      readonly kind: 'capture';
      /** The id of the charge. Set when the entry is sent. */
      id: string;
      /** Null: everything that is left. */
      readonly amountMicros: Micros | null;
      /** The version of the rate card that priced it; 0 for none. */
      readonly cardVersion: number;
      /** Whether the rest is released. */
      readonly isFinal: boolean;
      readonly over: OverMode;
      readonly metadata: string | null;
    })
  | (OfHold & { readonly kind: 'release' })
  /** `seconds` count from now. */
  | (OfHold & { readonly kind: 'extend'; readonly seconds: number });

interface DoneHold {
  /** `replayed`: the idempotency key already did it. The hold is returned in its current state. */
  readonly kind: 'done' | 'replayed';
  readonly hold: Hold;
  /** The charge of a capture. */
  readonly chargeId: string;
  /** The amount placed or captured. */
  readonly amountMicros: Micros;
  /** The balance after the hold was placed or captured. */
  readonly balanceMicros: Micros;
  readonly cardVersion: number;
  readonly receiptKey: number;
}

interface Insufficient {
  readonly kind: 'insufficient';
  readonly consumerId: string;
  readonly balanceMicros: Micros;
  /** The amount that the balance had to cover. */
  readonly requiredMicros: Micros;
}

/** The budget of the spend key was closed. */
interface KeyClosed {
  readonly kind: 'key_closed';
}

interface ExceedsHold {
  readonly kind: 'exceeds_hold';
  readonly remainingMicros: Micros;
}

type NotOpen =
  | { readonly kind: 'hold_closed'; readonly hold: Hold }
  | { readonly kind: 'unknown_hold' };

interface KeyReused {
  readonly kind: 'key_reused';
}

/** What an entry of each kind can come to. A capture needs no approval, because placing its hold did. */
export interface Outcomes {
  readonly place: DoneHold | Insufficient | LimitReached | ApprovalRequired | KeyClosed | KeyReused;
  readonly capture:
    | DoneHold
    | Insufficient
    | LimitReached
    | KeyClosed
    | ExceedsHold
    | NotOpen
    | KeyReused;
  readonly release: DoneHold | NotOpen;
  readonly extend: DoneHold | NotOpen | KeyReused;
  readonly charge: ChargeOutcome;
}

export type HoldOutcome = Outcomes[HoldEntry['kind']];
