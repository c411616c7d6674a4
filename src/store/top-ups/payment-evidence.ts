/**
 * What the payment processor was seen to show of a top-up. The step that read the processor's answer writes it here,
 * and no other: a credit, a failure or an expiry takes effect only when the row holds the evidence for it. A step that
 * is started by hand therefore does nothing that the processor does not show.
 */
import type { Micros } from '../../domain/money.ts';
import { sql, type Connection } from '../database.ts';

/** The processor's final words on a payment. */
export type Seen =
  | { readonly kind: 'paid'; readonly paymentIntentId: string; readonly paidMicros: Micros }
  | { readonly kind: 'expired' }
  | { readonly kind: 'failed'; readonly code: string };

/**
 * Writes down what was just read. A payment stays written, whatever is read later, and belongs to the one payment
 * intent that the row names; a payment of another amount violates a constraint. False: the row names another intent.
 */
export async function recordSeen(
  connection: Connection,
  topUpId: string,
  seen: Seen,
): Promise<boolean> {
  if (seen.kind === 'paid') return recordPaid(connection, topUpId, seen);
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set seen_verdict = ${seen.kind}, seen_at = now(),
      seen_failure_code = ${seen.kind === 'failed' ? seen.code : null}
    where id = ${topUpId} and status = 'pending' and seen_verdict is distinct from 'paid'
  `);
  return true;
}

async function recordPaid(
  connection: Connection,
  topUpId: string,
  { paymentIntentId, paidMicros }: Extract<Seen, { kind: 'paid' }>,
): Promise<boolean> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set payment_intent_id = ${paymentIntentId}, seen_verdict = 'paid',
      seen_micros = ${paidMicros}, seen_failure_code = null, seen_at = now()
    where id = ${topUpId} and coalesce(payment_intent_id, ${paymentIntentId}) = ${paymentIntentId}
  `);
  return rowCount === 1;
}
