/**
 * Payment of a session on its hosted page, and the later result of a bank debit. Paying twice takes the money once: a
 * session that is no longer open does not change.
 */
import type Stripe from 'stripe';
import { findSource, refusalOf, type Decline, type Source } from '../cards.ts';
import { addTax, getSession, notesOfSession } from '../resources/checkout-sessions.ts';
import type { Context } from '../context.ts';
import { addInvoice } from '../resources/invoices.ts';
import { newCustomer } from '../resources/customers.ts';
import { refused } from '../http/errors.ts';
import { record } from '../events.ts';
import { confirm, fail, getIntent, newIntent, succeed } from '../resources/payment-intents.ts';
import {
  allowRedisplay,
  createPaymentMethod,
  sourceOfMethod,
} from '../resources/payment-methods.ts';
import { attachTo } from '../resources/payment-methods.ts';
import { setUp } from '../resources/setup-intents.ts';

export type PaymentResult =
  | { readonly kind: 'done'; readonly session: Stripe.Checkout.Session }
  | {
      readonly kind: 'declined';
      readonly session: Stripe.Checkout.Session;
      readonly decline: Decline;
    };

const NOT_ACCEPTED: Decline = {
  code: 'payment_method_not_available',
  declineCode: undefined,
  message: 'This payment method is not accepted here.',
};

/** What the payer sends. */
export interface PaymentForm {
  /** The number that was typed. */
  readonly card: string;
  /** The id of an offered card; else empty. */
  readonly saved: string;
  /** Whether the card is saved for the next checkout. */
  readonly save: boolean;
  readonly address: Stripe.Address;
}

/** The customer's cards that may be shown again, newest first. A page without a customer has none. */
export function offeredCards(
  { store }: Context,
  { mode, customer }: Stripe.Checkout.Session,
): readonly Stripe.PaymentMethod[] {
  if (mode !== 'payment' || typeof customer !== 'string') return [];
  const cards = store.all('payment_method', { customer, type: 'card' });
  return cards.filter(({ allow_redisplay }) => allow_redisplay === 'always').toReversed();
}

export function paySession(context: Context, id: string, form: PaymentForm): PaymentResult {
  const session = getSession(context, id);
  if (session.status !== 'open') return { kind: 'done', session };
  const saved = offeredCards(context, session).find((card) => card.id === form.saved);
  const source = saved ? sourceOfMethod(context, saved) : findSource(form.card);
  if (!source) return { kind: 'declined', session, decline: refusalOf(form.card) };
  if (!session.payment_method_types.includes(source.type)) {
    return { kind: 'declined', session, decline: NOT_ACCEPTED };
  }

  if (session.mode === 'setup') return saveCard(context, session, source);
  const { save, address } = form;
  locate(context, session, address);
  const intent = intentOf(context, session, save, address);
  const method = saved ?? createPaymentMethod(context, source);
  const decline = confirm(context, intent, method, { presence: 'on_session' });
  if (decline) {
    context.store.update(session);
    return { kind: 'declined', session, decline };
  }
  // The box saves the card for the customer's next checkout. It does not set it up for payments without the customer.
  if (save && notesOfSession(context, id).offersSave && typeof session.customer === 'string') {
    attachTo(context, method, session.customer);
    allowRedisplay(context, method);
  }
  session.status = 'complete';
  session.payment_status = intent.status === 'succeeded' ? 'paid' : 'unpaid';
  session.url = null;
  session.customer_details = customerDetails(session.customer_email);
  context.store.update(session, null);
  if (session.payment_status === 'paid') invoice(context, session);
  record(context, 'checkout.session.completed', session);
  return { kind: 'done', session };
}

/** The tax follows the address that the payer typed. */
function locate(context: Context, session: Stripe.Checkout.Session, address: Stripe.Address): void {
  if (!session.automatic_tax.enabled) return;
  addTax(session, address);
  const customer = context.store.follow('customer', session.customer);
  if (customer && notesOfSession(context, session.id).updatesAddress) {
    context.store.update({ ...customer, address });
  }
}

function invoice(context: Context, session: Stripe.Checkout.Session): void {
  if (session.invoice_creation?.enabled) addInvoice(context, session);
}

function saveCard(
  context: Context,
  session: Stripe.Checkout.Session,
  source: Source,
): PaymentResult {
  if (source.type === 'card' && source.declines === 'always' && source.decline) {
    return { kind: 'declined', session, decline: source.decline };
  }
  const intent = context.store.follow('setup_intent', session.setup_intent);
  if (!intent) throw new Error(`${session.id} has no setup intent`);
  const method = createPaymentMethod(context, source);
  if (typeof session.customer === 'string') attachTo(context, method, session.customer);
  setUp(context, intent, method);
  session.status = 'complete';
  session.url = null;
  context.store.update(session, null);
  record(context, 'checkout.session.completed', session);
  return { kind: 'done', session };
}

/** Settles a pending bank debit and updates its session, if any. */
export function settleDebit(
  context: Context,
  intent: Stripe.PaymentIntent,
  outcome: 'succeeded' | 'failed',
): void {
  if (intent.status !== 'processing') {
    throw refused(`${intent.id} has a status of ${intent.status}, not processing.`);
  }
  const method = context.store.follow('payment_method', intent.payment_method);
  if (!method) throw new Error(`${intent.id} has no payment method`);
  if (outcome === 'succeeded') succeed(context, intent, method);
  else fail(context, intent, method, debitFailure(context, method));
  const session = context.store.all('checkout.session', { payment_intent: intent.id })[0];
  if (!session) return;
  if (outcome === 'succeeded') {
    session.payment_status = 'paid';
    invoice(context, session);
  }
  context.store.update(session);
  record(context, `checkout.session.async_payment_${outcome}`, session);
}

/** A debit that no control settled in time ends as its account number determines. */
export function settleDueDebit(context: Context, intent: Stripe.PaymentIntent): void {
  const method = context.store.follow('payment_method', intent.payment_method);
  const source = method && sourceOfMethod(context, method);
  const fails = source?.type === 'us_bank_account' && source.failure !== undefined;
  settleDebit(context, intent, fails ? 'failed' : 'succeeded');
}

/** One intent for all attempts on a session. Also creates a customer when a card will be saved, or for an invoice. */
function intentOf(
  context: Context,
  session: Stripe.Checkout.Session,
  save: boolean,
  address: Stripe.Address,
): Stripe.PaymentIntent {
  const notes = notesOfSession(context, session.id);
  const usage = notes.setupFutureUsage;
  const isSaved = usage !== null || notes.cardFutureUsage !== null || (save && notes.offersSave);
  const isNeeded = isSaved || session.invoice_creation?.enabled === true;
  if (session.customer === null && (isNeeded || session.customer_creation === 'always')) {
    session.customer = newCustomer(context, (customer) => {
      customer.email = session.customer_email;
      if (session.automatic_tax.enabled) customer.address = address;
    }).id;
  }
  const customer = typeof session.customer === 'string' ? session.customer : null;
  if (typeof session.payment_intent === 'string') {
    const before = getIntent(context, session.payment_intent);
    const amount = session.amount_total ?? before.amount;
    return { ...before, amount, customer, setup_future_usage: usage };
  }
  const intent = newIntent(context, {
    amount: session.amount_total ?? 0,
    customer,
    description: notes.intentDescription,
    descriptorSuffix: notes.descriptorSuffix ?? null,
    metadata: notes.intentMetadata,
    setupFutureUsage: usage,
    allowedTypes: session.payment_method_types,
    cardFutureUsage: notes.cardFutureUsage,
  });
  session.payment_intent = intent.id;
  return intent;
}

function debitFailure(context: Context, method: Stripe.PaymentMethod): Decline {
  const source = sourceOfMethod(context, method);
  const known = source.type === 'us_bank_account' ? source.failure : undefined;
  return (
    known ?? {
      code: 'debit_not_authorized',
      declineCode: undefined,
      message: 'The customer has notified their bank that this payment was unauthorized.',
    }
  );
}

function customerDetails(email: string | null): Stripe.Checkout.Session.CustomerDetails {
  return {
    address: null,
    business_name: null,
    email,
    individual_name: null,
    name: null,
    phone: null,
    tax_exempt: 'none',
    tax_ids: [],
  };
}
