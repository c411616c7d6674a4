/**
 * The payment processor's evidence for a top-up. Only the step that read the processor's response writes it. A credit, a
 * failure or an expiry takes effect only if the row has the evidence for it, so a step that somebody starts manually does
 * nothing that the processor does not show.
 */
import type { Micros } from '../../domain/money.ts';
import { sql, type Connection } from '../database.ts';

/** The processor's final verdict on a payment. */
export type Seen =
  | {
      readonly kind: 'paid';
      readonly paymentIntentId: string;
      /** With tax. */
      readonly paidMicros: Micros;
      readonly taxMicros: Micros;
      readonly invoiceId?: string | undefined;
      /** Refunded or disputed since: the credit has that read. */
      readonly hasReversals: boolean;
    }
  | { readonly kind: 'expired' }
  | { readonly kind: 'failed'; readonly code: string };

/**
 * Records the verdict that was just read. A later read never replaces a recorded payment, which belongs to the row's one
 * payment intent; a payment of a different amount violates a constraint. False: the row has a different intent.
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
  {
    paymentIntentId,
    paidMicros,
    taxMicros,
    invoiceId,
    hasReversals,
  }: Extract<Seen, { kind: 'paid' }>,
): Promise<boolean> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set payment_intent_id = ${paymentIntentId}, seen_verdict = 'paid',
      seen_micros = ${paidMicros}, tax_micros = ${taxMicros},
      invoice_id = coalesce(invoice_id, ${invoiceId ?? null}), seen_failure_code = null, seen_at = now(),
      reversal_reported = reversal_reported or ${hasReversals}
    where id = ${topUpId} and coalesce(payment_intent_id, ${paymentIntentId}) = ${paymentIntentId}
  `);
  return rowCount === 1;
}
