/** The ways in which Stripe's books and ours can differ about one top-up. */
export const DIFFERENCES = {
  not_credited: 'paid at Stripe but not credited',
  not_paid: 'credited but not paid at Stripe',
  payment_mismatch: 'Stripe has a payment of another amount, currency or top-up',
  paid_twice: 'Stripe has more than one payment',
  unknown_top_up: 'Stripe has a payment for a top-up that the ledger does not know',
  reversals: 'refunds or disputes are not the same at Stripe and in the ledger',
} as const;

export type DifferenceKind = keyof typeof DIFFERENCES;

export const DIFFERENCE_KINDS = Object.keys(DIFFERENCES) as DifferenceKind[];

/**
 * The kinds that an operator may settle: money that an adjustment accounts for. Reconciliation resolves the others, or
 * a workflow is at fault.
 */
export const SETTLED_KINDS: ReadonlySet<DifferenceKind> = new Set([
  'not_paid',
  'payment_mismatch',
  'paid_twice',
  'unknown_top_up',
]);

/** For people, from both sides' sums in the same unit. They are equal only if a settled difference ended. */
export function differenceText(kind: DifferenceKind, processor: number, ledger: number): string {
  const text = DIFFERENCES[kind];
  const isEnded = processor === ledger && SETTLED_KINDS.has(kind);
  return isEnded ? `settled, but no longer true: ${text}` : text;
}

/** The ids of the payments that were compared, for people: `pi_1 (credited), pi_2`. */
export function paymentsText(ids: readonly string[], creditedId: string | null): string {
  return ids.map((id) => (id === creditedId ? `${id} (credited)` : id)).join(', ') || 'no payment';
}

/**
 * The payment that somebody who looks into a difference opens: the credited one if its reversals differ, and otherwise
 * one beside it. Null if none was compared.
 */
export function paymentToOpen(
  kind: DifferenceKind,
  ids: readonly string[],
  creditedId: string | null,
): string | null {
  const isReversal = kind === 'reversals';
  return ids.find((id) => (id === creditedId) === isReversal) ?? ids[0] ?? null;
}
