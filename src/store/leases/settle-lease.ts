/**
 * Settles calls of a lease, and releases it. migrations/functions/settle_lease.sql decides; this file carries
 * arrays.
 */
import { asMicros, type Micros } from '../../domain/money.ts';
import { lockConsumer } from '../balance/consumers.ts';
import { repayDebts } from '../balance/debts.ts';
import { int8Array, textArray, uuidArray } from '../charges/binary-arrays.ts';
import { identityColumns, type Identity } from '../charges/identity.ts';
import type { ReplayWindow } from '../charges/post-charges.ts';
import { sql, unchecked, type Database } from '../database.ts';
import { findLease, type Lease } from './lease.ts';

/** A call: a charge of the lease. Its idempotency key is its number. */
export interface SettledEntry extends Identity {
  /** The UUID of the charge. */
  readonly id: string;
  readonly tool: string;
  readonly amountMicros: Micros;
  /** JSON. */
  readonly metadata: string | null;
}

export interface Settlement {
  readonly developerNumber: number;
  /** A UUID. */
  readonly leaseId: string;
  /** The fence that the lease must have; null: any. */
  readonly fence: number | null;
  readonly entries: readonly SettledEntry[];
  /** Whether what is left is released. */
  readonly isFinal: boolean;
}

export type SettledOutcome =
  | {
      /** `replayed`: settled before. */
      readonly kind: 'done' | 'replayed';
      readonly chargeId: string;
      readonly amountMicros: Micros;
      readonly receiptKey: number;
    }
  | { readonly kind: 'exceeds_lease' | 'above_price'; readonly limitMicros: Micros }
  | { readonly kind: 'closed' | 'key_reused' | 'unknown_tool' };

export type SettledLease =
  | {
      readonly kind: 'settled';
      readonly lease: Lease;
      readonly outcomes: readonly SettledOutcome[];
    }
  | { readonly kind: 'fenced'; readonly lease: Lease }
  | { readonly kind: 'unknown_lease' };

interface SettledRow {
  readonly ord: number;
  readonly outcome: SettledOutcome['kind'];
  readonly charge_id: string;
  readonly amount: Micros;
  readonly signed_by: number;
  readonly limit_micros: Micros | null;
}

/**
 * In one commit. Debts are repaid from what is released. A number that occurs again has the outcome of its first entry
 * if it asks for the same, and is refused otherwise.
 */
export async function settleLease(
  database: Database,
  { developerNumber, leaseId, fence, entries, isFinal }: Settlement,
  receiptKey: number,
  replay: ReplayWindow,
): Promise<SettledLease> {
  const numbered = Map.groupBy(entries, ({ idempotencyHash }) => idempotencyHash);
  const firsts = [...numbered.values()].flatMap(([first]) => first ?? []);
  const columns = [
    uuidArray(firsts.map(({ id }) => id)),
    textArray(firsts.map(({ tool }) => tool)),
    int8Array(firsts.map(({ amountMicros }) => amountMicros)),
    ...identityColumns(firsts),
    textArray(firsts.map(({ metadata }) => metadata)),
  ].map((column) => sql.binary(column));
  return database.transaction(async (tx) => {
    const rows = await tx.any(sql.prepared('settle_lease', unchecked<SettledRow>())`
      select ord, outcome, charge_id, amount, signed_by, limit_micros
      from farebox.settle_lease(${developerNumber}::int4, ${leaseId}::uuid, ${fence}::int4,
        ${sql.join(columns, sql.fragment`, `)}, ${isFinal}::boolean, ${receiptKey}::int2,
        ${replay.fromId}::uuid, ${replay.toId}::uuid)
    `);
    const lease = await findLease(tx, { kind: 'developer', developerNumber }, leaseId);
    if (!lease) return { kind: 'unknown_lease' };
    // The function has locked the hold, so the fence is the one that it read.
    if (fence !== null && fence !== lease.fence) return { kind: 'fenced', lease };
    if (isFinal) {
      await lockConsumer(tx, lease);
      await repayDebts(tx, [lease]);
    }
    const decided = new Map(
      rows.flatMap((found) => {
        const first = firsts[found.ord - 1];
        return first ? [[first.idempotencyHash, { first, outcome: outcomeOf(found) }]] : [];
      }),
    );
    return {
      kind: 'settled',
      lease,
      outcomes: entries.map((entry) => {
        const made = decided.get(entry.idempotencyHash);
        if (!made) throw new Error(`an entry of ${entries.length} was not decided`);
        return made.first === entry ? made.outcome : repeated(made, entry);
      }),
    };
  });
}

function repeated(
  { first, outcome }: { readonly first: SettledEntry; readonly outcome: SettledOutcome },
  { fingerprint }: SettledEntry,
): SettledOutcome {
  if (fingerprint !== first.fingerprint) return { kind: 'key_reused' };
  return outcome.kind === 'done' ? { ...outcome, kind: 'replayed' } : outcome;
}

function outcomeOf({
  outcome,
  charge_id,
  amount,
  signed_by,
  limit_micros,
}: SettledRow): SettledOutcome {
  switch (outcome) {
    case 'done':
    case 'replayed':
      return {
        kind: outcome,
        chargeId: charge_id,
        amountMicros: amount,
        receiptKey: signed_by,
      };
    case 'exceeds_lease':
    case 'above_price':
      return { kind: outcome, limitMicros: limit_micros ?? asMicros(0) };
    case 'closed':
    case 'key_reused':
    case 'unknown_tool':
      return { kind: outcome };
  }
}
