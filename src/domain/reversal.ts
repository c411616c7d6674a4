/**
 * Reversals take the money of a top-up back: refunds and disputes. The status decides the claim: the amount
 * permanently, the amount on hold until the decision, or nothing.
 */
export type RefundStatus = 'requested' | 'made' | 'failed';
export type DisputeStatus = 'open' | 'lost' | 'won';

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
