/** What clients did to one consumer's money, and what they were told. Money is in micro-dollars. */

/** The part of an answer that says what happened. Ids are those on the wire. */
export type Effect =
  | {
      readonly kind: 'charge';
      readonly id: string;
      readonly micros: number;
      readonly balance: number;
    }
  | {
      readonly kind: 'hold';
      readonly id: string;
      readonly micros: number;
      readonly balance: number;
    }
  /** A charge or a hold that did not fit. */
  | { readonly kind: 'refusal'; readonly micros: number; readonly balance: number }
  | { readonly kind: 'credit'; readonly id: string; readonly micros: number }
  | { readonly kind: 'balance'; readonly balance: number }
  | {
      readonly kind: 'refund';
      readonly chargeId: string;
      readonly micros: number;
      /** By all refunds of the charge so far. */
      readonly refunded: number;
    }
  | {
      readonly kind: 'refund_refused';
      readonly chargeId: string;
      readonly micros: number;
      readonly refundable: number;
    }
  | {
      readonly kind: 'capture';
      readonly holdId: string;
      readonly id: string;
      readonly micros: number;
      /** Whether what is left was released. */
      readonly isFinal: boolean;
      readonly balance: number;
    }
  | { readonly kind: 'release'; readonly holdId: string }
  /** A capture or a release that found the hold closed. */
  | { readonly kind: 'closed'; readonly holdId: string; readonly by: 'capture' | 'release' };

/** It took effect at one moment between these two times, by one clock. */
export interface Operation {
  readonly effect: Effect;
  readonly calledMs: number;
  readonly answeredMs: number;
}
