/**
 * How much may be charged to the saved card in a UTC month. The caller locks the account's row until its transaction
 * ends, so that sums are exact under concurrency.
 */
import { Type, type Static } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { micros, nullable, row, sql, type Connection, type Transaction } from '../database.ts';

const Taken = Type.Object({
  /** The sum of the month's direct top-ups, except those that took nothing. */
  taken: Type.Integer(),
  /** The automatic ones among them. */
  takenAutomatically: Type.Integer(),
});

export interface Consent extends Static<typeof Taken> {
  /** Null if the owner has not consented. */
  readonly ceiling: number | null;
}

const ceilingRow = row(Type.Object({ ceiling: nullable(micros) }));
const takenRow = row(Taken);

export async function lockConsent(tx: Transaction, consumerId: string): Promise<Consent> {
  const ceiling = await tx.oneFirst(sql.type(ceilingRow)`
    select consent_ceiling_micros as ceiling from farebox.accounts
    where consumer_id = ${consumerId} for update
  `);
  // A separate statement, whose snapshot has everything committed while the lock was awaited.
  const taken = await tx.one(sql.type(takenRow)`
    select coalesce(sum(amount_micros), 0) as taken,
      coalesce(sum(amount_micros) filter (where automatic), 0) as "takenAutomatically"
    from farebox.top_ups
    where consumer_id = ${consumerId} and method = 'direct' and status not in ('failed', 'expired')
      and created_at >= date_trunc('month', now(), 'UTC')
  `);
  return { ceiling, ...taken };
}

/**
 * Null withdraws the consent. Only the owner changes it, never a consumer key. A waiting automatic top-up is checked
 * again.
 */
export async function setConsentCeiling(
  connection: Connection,
  consumerId: string,
  ceiling: Micros | null,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.accounts set consent_ceiling_micros = ${ceiling}
    where consumer_id = ${consumerId}
  `);
  await connection.query(sql.typeAlias('nothing')`
    update farebox.outbox set next_attempt_at = now()
    where topic = 'auto_top_up' and subject_id = ${consumerId}
  `);
}
