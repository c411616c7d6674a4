/**
 * The payment processor's evidence for a top-up. Only the step that read the processor's response writes it.
 * A credit, a failure or an expiry takes effect only if the row has the evidence for it, so a step that
 * somebody starts manually does nothing that the processor does not show.
 */
import { Type, type Static } from 'typebox';
import type { SeenPayment } from '../../domain/verdict.ts';
import { nullable, row, sql, type Connection } from '../database.ts';
import { SEEN_VERDICTS, type TopUp } from './top-ups.ts';

/** The processor's final verdict on a top-up that was not paid. */
export type SeenUnpaid =
  | { readonly kind: 'expired' }
  | {
      readonly kind: 'failed';
      readonly code: string;
      /** The saved card, if its bank declined it permanently. */
      readonly refusedCardId?: string | undefined;
    };

/** The row, with the payment that it named when the processor was asked. */
type Asked = Pick<TopUp, 'id' | 'sessionId' | 'paymentIntentId'>;

const Kept = Type.Object({
  verdict: nullable(Type.Enum(SEEN_VERDICTS)),
  failureCode: nullable(Type.String()),
  refusedCardId: nullable(Type.String()),
  isPending: Type.Boolean(),
});
/** What the row now has. */
export type Kept = Static<typeof Kept>;

const keptRow = row(Kept);
const refusedRow = row(Type.Object({ isRefused: Type.Boolean() }));

const kept = sql.fragment`
  seen_verdict as verdict, seen_failure_code as "failureCode", refused_card_id as "refusedCardId",
  status = 'pending' as "isPending"
`;

/**
 * Records that a pending top-up was not paid and never will be, unless the row already has a verdict or now
 * names another payment. The first verdict stays, because we close the payment after it and read it as
 * expired from then on.
 */
export async function recordUnpaid(
  connection: Connection,
  { id, sessionId, paymentIntentId }: Asked,
  seen: SeenUnpaid,
): Promise<Kept> {
  const failureCode = seen.kind === 'failed' ? seen.code : null;
  const refusedCardId = seen.kind === 'failed' ? (seen.refusedCardId ?? null) : null;
  const recorded = await connection.maybeOne(sql.type(keptRow)`
    update farebox.top_ups set seen_verdict = ${seen.kind}, seen_at = now(), seen_failure_code = ${failureCode},
      refused_card_id = ${refusedCardId}
    where id = ${id} and status = 'pending' and seen_verdict is null
      and session_id is not distinct from ${sessionId}
      and payment_intent_id is not distinct from ${paymentIntentId}
    returning ${kept}
  `);
  if (recorded) return recorded;
  return connection.one(sql.type(keptRow)`select ${kept} from farebox.top_ups where id = ${id}`);
}

/** The payer of a checkout has authorized the payment, and cannot pay there again. */
export async function recordUnderWay(connection: Connection, topUpId: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set under_way_at = now(), updated_at = now()
    where id = ${topUpId} and status = 'pending' and under_way_at is null
  `);
}

/** A payment wins over every other verdict, and is never replaced. False: the row has a different payment intent. */
export async function recordPaid(
  connection: Connection,
  topUpId: string,
  { paymentIntentId, paidMicros, taxMicros, invoiceId, hasReversals }: SeenPayment,
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
