/** Leases: holds that a client spends by itself. Their states have the order of holds' states. */
export const LEASE_STATUSES = ['open', 'settled', 'released', 'expired'] as const;

export type LeaseStatus = (typeof LEASE_STATUSES)[number];

export const LEASE_SECONDS_DEFAULT = 300;
/** The most tools of one lease. */
export const LEASED_TOOLS_MAX = 100;
/** Entries of one settlement: one statement, during which the consumer's other charges wait. */
export const SETTLED_MAX = 1_000;
/** The numbers of entries. */
export const SEQUENCE_MAX = 2 ** 31 - 1;

export function isSequence(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= SEQUENCE_MAX;
}
