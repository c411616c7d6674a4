/** Why the money credited to a consumer changed: each row of `movements` has one of these. */
export const MOVEMENT_KINDS = [
  'top_up',
  'adjustment',
  'refund',
  'refund_returned',
  'dispute',
  'dispute_returned',
  'charge_refund',
] as const;

export type MovementKind = (typeof MOVEMENT_KINDS)[number];
