/**
 * Reversals take the money of a top-up back: refunds, disputes and fraud warnings. The status decides the
 * claim: the amount permanently, the amount on hold until the decision, or nothing.
 */
export type RefundStatus = 'requested' | 'made' | 'failed';
export type DisputeStatus = 'open' | 'lost' | 'won';
/** A bank's warning of fraud: it holds the money until it is over, and never takes it. */
export type WarningStatus = 'open' | 'won';

export const REVERSAL_KINDS = ['refund', 'dispute', 'warning'] as const;

export const REVERSAL_STATUSES = [
  'requested',
  'made',
  'failed',
  'open',
  'lost',
  'won',
] as const satisfies readonly (RefundStatus | DisputeStatus)[];
export type ReversalStatus = (typeof REVERSAL_STATUSES)[number];

export const CLAIMS = {
  requested: 'take',
  made: 'take',
  lost: 'take',
  open: 'hold',
  failed: 'nothing',
  won: 'nothing',
} as const satisfies Readonly<Record<ReversalStatus, 'take' | 'hold' | 'nothing'>>;
