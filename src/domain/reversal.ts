/**
 * What takes the money of a top-up back: a refund or a dispute. Its status says what it claims: the
 * amount, for good or held until it is decided, or nothing.
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
