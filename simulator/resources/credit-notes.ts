/** Credit notes of paid invoices, for what refunds of their payments returned. */
import type Stripe from 'stripe';
import type { Handler } from '../context.ts';
import { ok } from '../http/answers.ts';
import { noSuch, refused } from '../http/errors.ts';
import { listPage } from '../http/lists.ts';
import { newId } from '../ids.ts';

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
    return {
      amount_refunded,
      payment_record_refund: null,
      refund: refund.id,
      type: 'refund' as const,
    };
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
  const note: Stripe.CreditNote = {
    id: newId('cn'),
    object: 'credit_note',
    amount,
    amount_shipping: 0,
    created: context.now,
    currency: 'usd',
    customer: invoice.customer ?? '',
    customer_account: null,
    customer_balance_transaction: null,
    discount_amount: 0,
    discount_amounts: [],
    effective_at: context.now,
    invoice: invoice.id,
    lines: { object: 'list', data: [], has_more: false, url: '/v1/credit_notes/lines' },
    livemode: false,
    memo: null,
    metadata: params.metadata(),
    number: `${invoice.id}-CN-${notes.length + 1}`,
    out_of_band_amount: null,
    pdf: `${context.baseUrl}/credit-notes`,
    post_payment_amount: amount,
    pre_payment_amount: 0,
    pretax_credit_amounts: [],
    reason: params.oneOf('reason', ['duplicate', 'fraudulent', 'order_change']) ?? null,
    refunds,
    shipping_cost: null,
    status: 'issued',
    subtotal: net,
    subtotal_excluding_tax: net,
    total: amount,
    total_excluding_tax: net,
    total_taxes: [],
    type: 'post_payment',
    voided_at: null,
  };
  store.insert(note);
  return ok(note);
};

export const listCreditNotes: Handler = (context, params) => {
  const where = { invoice: params.string('invoice'), customer: params.string('customer') };
  return ok(listPage(context, params, 'credit_note', '/v1/credit_notes', where));
};
