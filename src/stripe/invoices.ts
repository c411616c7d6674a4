/**
 * The documents of taxed payments at Stripe. A checkout's session makes its own invoice; one for a payment by
 * the saved card is made here, of the tax that was calculated before the card was charged, and marked as paid
 * by that payment. Stripe forgets keys after a day, so each document names what it belongs to, and a later
 * attempt continues with it.
 */
import type { Stripe } from 'stripe';
import { wireId } from '../domain/ids.ts';
import { centsOf, formatDollars, microsOfCents, type Micros } from '../domain/money.ts';
import { DESCRIPTION } from './calls.ts';
import { isMissing } from './errors.ts';
import { idOf } from './verdict.ts';

export interface Invoiceable {
  /** The top-up's UUID. */
  readonly id: string;
  readonly paymentIntentId: string;
  readonly calculationId: string;
  readonly amountMicros: Micros;
  readonly taxMicros: Micros;
  /** RFC 3339. After a restore, its invoice may be older than its credit, and never older than this. */
  readonly createdAt: string;
}

/** Somebody changed the invoice in Stripe's dashboard. Only a person can correct it, and only there. */
export class ChangedInvoiceError extends Error {
  override readonly name = 'ChangedInvoiceError';
}

/** Stripe's clock and ours may differ. */
const LOOKED_BACK_SECONDS = 3_600;

/**
 * Returns the id of the paid invoice. Undefined: Stripe no longer has the calculation or the customer. Throws a
 * ChangedInvoiceError when the invoice was voided, or has another amount.
 */
export async function makeInvoice(
  stripe: Stripe,
  payment: Invoiceable,
): Promise<string | undefined> {
  try {
    const calculation = await stripe.tax.calculations.retrieve(payment.calculationId);
    const invoice = await invoiceOf(stripe, payment, calculation);
    if (invoice.status !== 'paid') {
      throw new ChangedInvoiceError(`${invoice.id} is ${invoice.status}, not paid`);
    }
    return invoice.id;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function invoiceOf(
  stripe: Stripe,
  payment: Invoiceable,
  calculation: Stripe.Tax.Calculation,
): Promise<Stripe.Invoice> {
  const { customer } = calculation;
  if (customer === null) throw new Error(`${payment.calculationId} has no customer`);
  const key = `${wireId('topUp', payment.id)}/invoice`;
  let invoice =
    (await findInvoice(stripe, payment, customer)) ??
    (await createInvoice(stripe, payment, customer, key));
  if (invoice.status === 'draft') {
    if (invoice.total === 0) {
      const lines = [lineOf(payment, calculation)];
      const idempotencyKey = `${key}/lines`;
      invoice = await stripe.invoices.addLines(invoice.id, { lines }, { idempotencyKey });
    }
    const cents = centsOf(payment.amountMicros) + centsOf(payment.taxMicros);
    if (invoice.total !== cents) {
      const [wanted, total] = [cents, invoice.total].map(microsOfCents).map(formatDollars);
      throw new ChangedInvoiceError(`amount of ${invoice.id}: ${wanted} expected, ${total} found`);
    }
    // Without `auto_advance`, Stripe tries no payment of its own.
    invoice = await stripe.invoices.finalizeInvoice(invoice.id, { auto_advance: false });
  }
  if (invoice.status !== 'open') return invoice;
  return stripe.invoices.attachPayment(invoice.id, { payment_intent: payment.paymentIntentId });
}

async function findInvoice(
  stripe: Stripe,
  { id, createdAt }: Invoiceable,
  customer: string,
): Promise<Stripe.Invoice | undefined> {
  const gte = Math.floor(Date.parse(createdAt) / 1_000) - LOOKED_BACK_SECONDS;
  for await (const invoice of stripe.invoices.list({ customer, created: { gte }, limit: 100 })) {
    if (invoice.metadata?.['top_up_id'] === wireId('topUp', id)) return invoice;
  }
  return undefined;
}

function createInvoice(
  stripe: Stripe,
  { id }: Invoiceable,
  customer: string,
  idempotencyKey: string,
): Promise<Stripe.Invoice> {
  return stripe.invoices.create(
    {
      customer,
      currency: 'usd',
      collection_method: 'charge_automatically',
      auto_advance: false,
      pending_invoice_items_behavior: 'exclude',
      metadata: { top_up_id: wireId('topUp', id) },
    },
    { idempotencyKey },
  );
}

/**
 * With the tax as it was calculated: Stripe reports that calculation, so the invoice must not calculate
 * another one.
 */
function lineOf(
  { amountMicros }: Invoiceable,
  { tax_breakdown: taxes }: Stripe.Tax.Calculation,
): Stripe.InvoiceAddLinesParams.Line {
  return {
    amount: centsOf(amountMicros),
    description: DESCRIPTION,
    tax_amounts: taxes.map(({ amount, taxable_amount, taxability_reason, tax_rate_details }) => {
      const { country, state, tax_type, percentage_decimal } = tax_rate_details;
      return {
        amount,
        taxable_amount,
        taxability_reason,
        tax_rate_data: {
          display_name: tax_type === null ? 'Tax' : nameOf(tax_type),
          inclusive: false,
          percentage: Number(percentage_decimal),
          ...(country !== null && { country }),
          ...(state !== null && { state }),
          ...(tax_type !== null && { tax_type }),
        },
      };
    }),
  };
}

/** `Sales tax` of `sales_tax`, `VAT` of `vat`. */
function nameOf(taxType: string): string {
  if (taxType.length <= 4) return taxType.toUpperCase();
  return (taxType.charAt(0).toUpperCase() + taxType.slice(1)).replaceAll('_', ' ');
}

/** Adds the credit note of a refund to the invoice, unless it has one, and returns its id. */
export async function addCreditNote(
  stripe: Stripe,
  invoiceId: string,
  refund: { readonly processorId: string; readonly grossMicros: Micros },
): Promise<string> {
  const { processorId, grossMicros } = refund;
  for await (const { id, refunds } of stripe.creditNotes.list({
    invoice: invoiceId,
    limit: 100,
  })) {
    if (refunds.some(({ refund: noted }) => idOf(noted) === processorId)) return id;
  }
  const amount = centsOf(grossMicros);
  const note = await stripe.creditNotes.create(
    {
      invoice: invoiceId,
      amount,
      refunds: [{ type: 'refund', refund: processorId, amount_refunded: amount }],
    },
    { idempotencyKey: `${processorId}/credit-note` },
  );
  return note.id;
}
