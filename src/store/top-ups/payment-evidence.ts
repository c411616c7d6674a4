/**
 * The payment processor's evidence for a top-up. Only the step that read the processor's response writes it. A credit, a
 * failure or an expiry takes effect only if the row has the evidence for it, so a step that somebody starts manually does
 * nothing that the processor does not show.
 */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { nullable, row, sql, type Connection } from '../database.ts';

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
  | {
      readonly kind: 'failed';
      readonly code: string;
      /** The saved card, if its bank will never accept it again. */
      readonly refusedCardId?: string | undefined;
    };

/** What the row said before. */
const verdictRow = row(Type.Object({ verdict: nullable(Type.String()) }));
const refusedRow = row(Type.Object({ isRefused: Type.Boolean() }));

/**
 * Records the verdict that was just read. A later read never replaces a recorded payment, which belongs to the row's one
 * payment intent; a payment of a different amount violates a constraint. Nor does an expiry replace a failure, after
 * which we cancel the intent ourselves. A refused card stays recorded. False: the row has a different intent, or a failure.
 */
export async function recordSeen(
  connection: Connection,
  topUpId: string,
  seen: Seen,
): Promise<boolean> {
  if (seen.kind === 'paid') return recordPaid(connection, topUpId, seen);
  const failureCode = seen.kind === 'failed' ? seen.code : null;
  const refusedCardId = seen.kind === 'failed' ? (seen.refusedCardId ?? null) : null;
  const kept = await connection.maybeOneFirst(sql.type(verdictRow)`
    with seen as (
      update farebox.top_ups set seen_verdict = ${seen.kind}, seen_at = now(), seen_failure_code = ${failureCode},
        refused_card_id = coalesce(${refusedCardId}, refused_card_id)
      where id = ${topUpId} and status = 'pending' and seen_verdict is distinct from 'paid'
        and (${seen.kind} = 'failed' or seen_verdict is distinct from 'failed')
    )
    select seen_verdict as verdict from farebox.top_ups where id = ${topUpId}
  `);
  return seen.kind === 'failed' || kept !== 'failed';
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

/** Whether the card's bank declined it permanently when an earlier top-up was to be paid. */
export async function isCardRefused(
  connection: Connection,
  consumerId: string,
  cardId: string,
): Promise<boolean> {
  return connection.oneFirst(sql.type(refusedRow)`
    select exists (
      select from farebox.top_ups where consumer_id = ${consumerId} and refused_card_id = ${cardId}
    ) as "isRefused"
  `);
}
