/** Invoices of paid checkouts, and the credit notes of their refunds: the fields that a client of payments reads. */
import type Stripe from 'stripe';
import type { Context, Handler } from '../context.ts';
import { record } from '../events.ts';
import { ok } from '../http/answers.ts';
import { noSuch, refused } from '../http/errors.ts';
import { listPage } from '../http/lists.ts';
import { newId } from '../ids.ts';

/** The invoice of a checkout that was just paid. */
export function addInvoice(context: Context, session: Stripe.Checkout.Session): void {
  const total = session.amount_total ?? 0;
  const tax = session.total_details?.amount_tax ?? 0;
  const invoice = {
    id: newId('in'),
    object: 'invoice',
    amount_due: total,
    amount_paid: total,
    amount_remaining: 0,
    automatic_tax: session.automatic_tax,
    billing_reason: 'manual',
    created: context.now,
    currency: 'usd',
    customer: session.customer,
    livemode: false,
    metadata: {},
    status: 'paid',
    subtotal: total - tax,
    subtotal_excluding_tax: total - tax,
    total,
    total_excluding_tax: total - tax,
  } as Stripe.Invoice;
  context.store.insert(invoice, { intent: session.payment_intent });
  record(context, 'invoice.paid', invoice);
  session.invoice = invoice.id;
  context.store.update(session);
}

export const retrieveInvoice: Handler = ({ store }, _params, id) => {
  const invoice = store.find('invoice', id);
  if (!invoice) throw noSuch('invoice', id);
  return ok(invoice);
};

/** A note of a paid invoice credits what refunds of its payment returned. */
export const createCreditNote: Handler = (context, params) => {
  const { store } = context;
  const invoice = store.find('invoice', params.required('invoice'));
  if (!invoice) throw noSuch('invoice', params.required('invoice'), 'invoice');
  const amount = params.integer('amount', { min: 1 });
  if (amount === undefined) throw params.missing('amount');
  params.ignore('email_type', 'memo');
  const refunds = params.list('refunds').map((each) => {
    each.oneOf('type', ['refund']);
    const refund = store.find('refund', each.required('refund'));
    if (!refund || refund.payment_intent !== store.notesOf(invoice.id)['intent']) {
      throw refused('The refund is not of a payment of this invoice.', undefined, 'refunds');
    }
    const amount_refunded = each.integer('amount_refunded', { min: 1 }) ?? refund.amount;
    return { amount_refunded, payment_record_refund: null, refund: refund.id, type: 'refund' };
  });
  if (refunds.reduce((sum, each) => sum + each.amount_refunded, 0) !== amount) {
    throw refused('The sum of the refunds must equal the amount of the credit note.');
  }
  const notes = store.all('credit_note', { invoice: invoice.id });
  const credited = notes.reduce((sum, { total }) => sum + total, 0);
  if (credited + amount > invoice.total) {
    throw refused('The sum of credit notes must not exceed the amount of the invoice.');
  }
  const net = Math.round((amount * (invoice.total_excluding_tax ?? 0)) / invoice.total);
  const note = {
    id: newId('cn'),
    object: 'credit_note',
    amount,
    created: context.now,
    currency: 'usd',
    customer: invoice.customer,
    invoice: invoice.id,
    livemode: false,
    metadata: params.metadata(),
    number: `${invoice.id}-CN-${notes.length + 1}`,
    post_payment_amount: amount,
    pre_payment_amount: 0,
    reason: params.oneOf('reason', ['duplicate', 'fraudulent', 'order_change']) ?? null,
    refunds,
    status: 'issued',
    subtotal: net,
    total: amount,
    total_excluding_tax: net,
    type: 'post_payment',
  } as unknown as Stripe.CreditNote;
  store.insert(note);
  record(context, 'credit_note.created', note);
  return ok(note);
};

export const listCreditNotes: Handler = (context, params) => {
  const where = { invoice: params.string('invoice'), customer: params.string('customer') };
  return ok(listPage(context, params, 'credit_note', '/v1/credit_notes', where));
};
