/** The documents of taxed payments: invoices of payments without a checkout page, and the credit notes of refunds. */
import { Type, type Static } from 'typebox';
import { durationOf, micros, row, sql, type Connection } from '../database.ts';

/** Stripe deletes a calculation of tax after 90 days. Later nothing can be invoiced, and nothing is tried. */
const INVOICED_WITHIN_DAYS = 60;

/** Credited, taxed and paid by the saved card, without an invoice. A checkout's session makes its own. */
const WITHOUT_INVOICE = sql.fragment`
  tax_calculation_id is not null and invoice_id is null
  and completed_at > now() - ${INVOICED_WITHIN_DAYS} * interval '1 day'
`;

const Uninvoiced = Type.Object({
  id: Type.String(),
  paymentIntentId: Type.String(),
  calculationId: Type.String(),
  amountMicros: micros,
  taxMicros: micros,
  /** RFC 3339. */
  createdAt: Type.String(),
});
export type Uninvoiced = Static<typeof Uninvoiced>;

const Unnoted = Type.Object({
  id: Type.String(),
  processorId: Type.String(),
  grossMicros: micros,
  invoiceId: Type.String(),
});

const uninvoicedRow = row(Uninvoiced);
const sessionRow = row(Type.Object({ id: Type.String() }));
const unnotedRow = row(Unnoted);

/** Null: it has an invoice, or needs none. */
export async function findWithoutInvoice(
  connection: Connection,
  topUpId: string,
): Promise<Uninvoiced | null> {
  return connection.maybeOne(sql.type(uninvoicedRow)`
    select id, payment_intent_id as "paymentIntentId", tax_calculation_id as "calculationId",
      amount_micros as "amountMicros", tax_micros as "taxMicros", created_at as "createdAt"
    from farebox.top_ups where id = ${topUpId} and payment_intent_id is not null and ${WITHOUT_INVOICE}
  `);
}

/**
 * The session of a taxed checkout whose invoice is unknown: the payment was found without its session, or the
 * session was read before Stripe had made the invoice. Null: there is none.
 */
export async function findSessionWithoutInvoice(
  connection: Connection,
  topUpId: string,
): Promise<string | null> {
  return connection.maybeOneFirst(sql.type(sessionRow)`
    select session_id as id from farebox.top_ups
    where id = ${topUpId} and session_id is not null and is_taxed and invoice_id is null
  `);
}

export async function recordInvoice(
  connection: Connection,
  topUpId: string,
  invoiceId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set invoice_id = coalesce(invoice_id, ${invoiceId}) where id = ${topUpId}
  `);
}

/**
 * Writes notices for payments that have had no invoice for this long, since the workflow may have been terminated: one
 * for each in this time. Returns how many.
 */
export async function noteMissingInvoices(
  connection: Connection,
  olderThanMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    with missing as (
      update farebox.top_ups set updated_at = now()
      where ${WITHOUT_INVOICE} and updated_at < now() - ${durationOf(olderThanMs)}
      returning ledger, id
    )
    insert into farebox.outbox (ledger, topic, subject_id)
    select ledger, 'reversal_reported', id from missing
  `);
  return rowCount;
}

/** Refunds of invoiced top-ups that have no credit note yet, oldest first. */
export async function listWithoutCreditNote(
  connection: Connection,
  topUpId: string,
): Promise<readonly Static<typeof Unnoted>[]> {
  return connection.any(sql.type(unnotedRow)`
    select r.id, r.processor_id as "processorId", t.invoice_id as "invoiceId",
      coalesce(r.gross_micros, r.amount_micros) as "grossMicros"
    from farebox.reversals r join farebox.top_ups t on t.id = r.top_up_id
    where r.top_up_id = ${topUpId} and r.kind = 'refund' and r.status = 'made'
      and r.credit_note_id is null and t.invoice_id is not null
    order by r.id
  `);
}

export async function recordCreditNote(
  connection: Connection,
  refundId: string,
  creditNoteId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.reversals set credit_note_id = ${creditNoteId} where id = ${refundId}
  `);
}
