/**
 * Invoices: those that a checkout makes once it is paid, and those that are made by hand and paid by
 * attaching a payment intent. An invoice here takes no payment by itself and has one line at most.
 */
import type Stripe from 'stripe';
import type { Context, Handler } from '../context.ts';
import { ok } from '../http/answers.ts';
import { noSuch, refused } from '../http/errors.ts';
import { listPage } from '../http/lists.ts';
import type { Params } from '../http/params.ts';
import { newId } from '../ids.ts';
import { getCustomer } from './customers.ts';
import { getIntent } from './payment-intents.ts';

/** The invoice of a checkout that was just paid. */
export function addInvoice(context: Context, session: Stripe.Checkout.Session): void {
  const invoice = newInvoice(context, session.customer as string, {});
  invoice.automatic_tax = { ...NO_TAX, ...session.automatic_tax };
  const total = session.amount_total ?? 0;
  bill(invoice, total - (session.total_details?.amount_tax ?? 0), total);
  finalize(context, invoice);
  pay(context, invoice);
  context.store.insert(invoice, { intent: session.payment_intent });
  session.invoice = invoice.id;
  context.store.update(session);
}

export const createInvoice: Handler = (context, params) => {
  const customer = getCustomer(context, params.required('customer'), 'customer');
  params.currency();
  params.oneOf('collection_method', ['charge_automatically']);
  params.oneOf('pending_invoice_items_behavior', ['exclude']);
  if (params.boolean('auto_advance') === true) {
    throw refused('The simulator knows invoices that do not advance by themselves.');
  }
  const invoice = newInvoice(context, customer.id, params.metadata());
  context.store.insert(invoice);
  return ok(invoice);
};

export const addLines: Handler = (context, params, id) => {
  const invoice = getInvoice(context, id);
  demand(invoice, 'draft');
  const lines = params.list('lines').map((line) => lineOf(context, invoice, line));
  if (lines.length !== 1 || invoice.lines.data.length > 0) {
    throw refused('The simulator knows invoices with one line.', undefined, 'lines');
  }
  invoice.lines.data.push(...lines);
  const net = lines.reduce((sum, { amount }) => sum + amount, 0);
  invoice.total_taxes = lines.flatMap(({ taxes }) => taxes ?? []);
  const tax = invoice.total_taxes.reduce((sum, { amount }) => sum + amount, 0);
  bill(invoice, net, net + tax);
  context.store.update(invoice);
  return ok(invoice);
};

export const finalizeInvoice: Handler = (context, params, id) => {
  const invoice = getInvoice(context, id);
  params.ignore('auto_advance');
  demand(invoice, 'draft');
  finalize(context, invoice);
  context.store.update(invoice);
  return ok(invoice);
};

/** A payment that has succeeded pays the invoice. */
export const attachPayment: Handler = (context, params, id) => {
  const invoice = getInvoice(context, id);
  demand(invoice, 'open');
  const intent = getIntent(context, params.required('payment_intent'), 'payment_intent');
  if (intent.customer !== invoice.customer) {
    throw refused('The customer of the PaymentIntent does not match that of the invoice.');
  }
  if (intent.status !== 'succeeded' || intent.amount_received !== invoice.total) {
    throw refused('The simulator knows payments of the whole invoice that have succeeded.');
  }
  pay(context, invoice);
  context.store.update(invoice);
  context.store.note(invoice.id, { intent: intent.id });
  return ok(invoice);
};

export const listInvoices: Handler = (context, params) => {
  const where = { customer: params.string('customer'), status: params.string('status') };
  return ok(listPage(context, params, 'invoice', '/v1/invoices', where));
};

function getInvoice(context: Context, id: string): Stripe.Invoice {
  const invoice = context.store.find('invoice', id);
  if (!invoice) throw noSuch('invoice', id);
  return invoice;
}

function demand(invoice: Stripe.Invoice, status: 'draft' | 'open'): void {
  if (invoice.status === status) return;
  throw refused(`This invoice is ${invoice.status}; it must be ${status}.`);
}

function bill(invoice: Stripe.Invoice, net: number, total: number): void {
  invoice.subtotal = net;
  invoice.subtotal_excluding_tax = net;
  invoice.total = total;
  invoice.total_excluding_tax = net;
  invoice.amount_due = total;
  invoice.amount_remaining = total;
}

function finalize(context: Context, invoice: Stripe.Invoice): void {
  invoice.status = 'open';
  invoice.number = `${invoice.id.slice(-8).toUpperCase()}-0001`;
  invoice.effective_at = context.now;
  invoice.status_transitions.finalized_at = context.now;
  invoice.hosted_invoice_url = `${context.baseUrl}/invoices`;
  invoice.invoice_pdf = `${context.baseUrl}/invoices/pdf`;
}

function pay(context: Context, invoice: Stripe.Invoice): void {
  invoice.status = 'paid';
  invoice.amount_paid = invoice.total;
  invoice.amount_remaining = 0;
  invoice.attempted = true;
  invoice.status_transitions.paid_at = context.now;
}

/** With the tax that the caller calculated. */
function lineOf(context: Context, invoice: Stripe.Invoice, params: Params): Stripe.InvoiceLineItem {
  const amount = params.integer('amount', { min: 1 });
  if (amount === undefined) throw params.missing('amount');
  const taxes = params.list('tax_amounts').map((tax): Stripe.InvoiceLineItem.Tax => {
    const rate = tax.object('tax_rate_data');
    if (!rate) throw tax.missing('tax_rate_data');
    rate.required('display_name');
    rate.required('percentage');
    if (rate.boolean('inclusive') !== false) {
      throw refused('The simulator knows tax on top of the amount only.');
    }
    rate.ignore('country', 'state', 'tax_type');
    return {
      amount: tax.integer('amount', { min: 0 }) ?? 0,
      tax_behavior: 'exclusive',
      tax_rate_details: { tax_rate: newId('txr') },
      taxability_reason: tax.string('taxability_reason') ?? 'not_available',
      taxable_amount: tax.integer('taxable_amount', { min: 0 }) ?? amount,
      type: 'tax_rate_details',
    };
  });
  return {
    id: newId('il'),
    object: 'line_item',
    amount,
    currency: 'usd',
    description: params.string('description') ?? null,
    discount_amounts: [],
    discountable: true,
    discounts: [],
    invoice: invoice.id,
    livemode: false,
    metadata: {},
    parent: null,
    period: { start: context.now, end: context.now },
    pretax_credit_amounts: [],
    pricing: null,
    quantity: 1,
    quantity_decimal: null,
    subscription: null,
    subtotal: amount,
    taxes,
  };
}

const NO_TAX: Stripe.Invoice.AutomaticTax = {
  disabled_reason: null,
  enabled: false,
  liability: null,
  provider: null,
  status: null,
};

function newInvoice(
  context: Context,
  customerId: string,
  metadata: Stripe.Metadata,
): Stripe.Invoice {
  const id = newId('in');
  const customer = context.store.find('customer', customerId);
  return {
    id,
    object: 'invoice',
    account_country: 'US',
    account_name: 'Simulator',
    account_tax_ids: null,
    amount_due: 0,
    amount_overpaid: 0,
    amount_paid: 0,
    amount_remaining: 0,
    amount_shipping: 0,
    application: null,
    attempt_count: 0,
    attempted: false,
    auto_advance: false,
    automatic_tax: NO_TAX,
    automatically_finalizes_at: null,
    billing_reason: 'manual',
    collection_method: 'charge_automatically',
    created: context.now,
    currency: 'usd',
    custom_fields: null,
    customer: customerId,
    customer_account: null,
    customer_address: customer?.address ?? null,
    customer_email: customer?.email ?? null,
    customer_name: customer?.name ?? null,
    customer_phone: null,
    customer_shipping: null,
    customer_tax_exempt: 'none',
    customer_tax_ids: [],
    default_payment_method: null,
    default_source: null,
    default_tax_rates: [],
    description: null,
    discounts: [],
    due_date: null,
    effective_at: null,
    ending_balance: null,
    footer: null,
    from_invoice: null,
    hosted_invoice_url: null,
    invoice_pdf: null,
    issuer: { type: 'self' },
    last_finalization_error: null,
    latest_revision: null,
    lines: { object: 'list', data: [], has_more: false, url: `/v1/invoices/${id}/lines` },
    livemode: false,
    metadata,
    next_payment_attempt: null,
    number: null,
    on_behalf_of: null,
    parent: null,
    payment_settings: {
      default_mandate: null,
      payment_method_options: null,
      payment_method_types: null,
    },
    period_end: context.now,
    period_start: context.now,
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    receipt_number: null,
    rendering: null,
    shipping_cost: null,
    shipping_details: null,
    starting_balance: 0,
    statement_descriptor: null,
    status: 'draft',
    status_transitions: {
      finalized_at: null,
      marked_uncollectible_at: null,
      paid_at: null,
      voided_at: null,
    },
    subtotal: 0,
    subtotal_excluding_tax: 0,
    test_clock: null,
    total: 0,
    total_discount_amounts: [],
    total_excluding_tax: 0,
    total_pretax_credit_amounts: [],
    total_taxes: [],
    webhooks_delivered_at: null,
  };
}
