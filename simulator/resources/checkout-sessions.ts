/**
 * Checkout sessions: open -> complete (by the hosted page) or expired (by the API, or when it is due). Payment on the
 * page is in checkout-payment.ts.
 */
import type Stripe from 'stripe';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { getCustomer } from './customers.ts';
import { invalidParam, noSuch, refused } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';
import type { Params } from '../http/params.ts';
import { cancel, checkAmount, getIntent } from './payment-intents.ts';
import { newSetupIntent } from './setup-intents.ts';
import { suffixIn } from './statement-descriptor.ts';
import { addressOfCustomer, taxOf } from './tax.ts';

const EXPIRES_AFTER_SECONDS = { min: 30 * 60, max: 24 * 60 * 60 } as const;
/** A request for exactly 30 minutes arrives a little after its sender read the clock. */
const CLOCK_SLACK_SECONDS = 60;

/** Details of a session that the page needs and the API does not return. */
export interface SessionNotes {
  readonly title: string;
  readonly intentMetadata: Stripe.Metadata;
  readonly intentDescription: string | null;
  readonly descriptorSuffix: string | null;
  readonly setupFutureUsage: Stripe.PaymentIntent.SetupFutureUsage | null;
  /** The same for cards alone. */
  readonly cardFutureUsage: Stripe.PaymentIntent.SetupFutureUsage | null;
  readonly offersSave: boolean;
  /** The customer gets the address that the payer types. */
  readonly updatesAddress: boolean;
}

export const createSession: Handler = (context, params) => {
  const mode = params.oneOf('mode', ['payment', 'setup']);
  if (mode === undefined) throw params.missing('mode');
  const { amount, title } =
    mode === 'payment' ? lineItems(params) : { amount: null, title: 'Save a card' };
  if (mode === 'setup') params.currency();
  const customer = params.string('customer');
  if (customer !== undefined) getCustomer(context, customer, 'customer');
  const email = params.string('customer_email');
  const creation = params.oneOf('customer_creation', ['always', 'if_required']);
  if (customer !== undefined && (email ?? creation) !== undefined) {
    const message = 'You may only specify one of these parameters: customer, customer_email';
    throw invalidParam('customer', creation ? message.replace('_email', '_creation') : message);
  }
  const allowedTypes = params.strings('allowed_payment_method_types') ?? null;
  const intent = params.object('payment_intent_data');
  const saving = params.object('saved_payment_method_options');
  saving?.ignore('payment_method_remove');
  const card = params.object('payment_method_options')?.object('card');
  const update = params.object('customer_update');
  const updated = { address: whether(update, 'address'), name: whether(update, 'name') };
  if (customer === undefined && (updated.address ?? updated.name) !== undefined) {
    throw invalidParam('customer_update', '`customer_update` can only be used with `customer`.');
  }
  const notes: SessionNotes = {
    title,
    intentMetadata: intent?.metadata() ?? {},
    intentDescription: intent?.string('description') ?? null,
    descriptorSuffix: suffixIn(intent),
    setupFutureUsage: intent?.oneOf('setup_future_usage', ['off_session', 'on_session']) ?? null,
    cardFutureUsage: card?.oneOf('setup_future_usage', ['off_session', 'on_session']) ?? null,
    updatesAddress: updated.address === 'auto',
    offersSave: saving?.oneOf('payment_method_save', ['enabled', 'disabled']) === 'enabled',
  };
  intent?.ignore('receipt_email');
  const saves = notes.offersSave ? 'enabled' : 'disabled';
  const session: Stripe.Checkout.Session = {
    ...blankSession(context, amount),
    mode,
    payment_status: mode === 'setup' ? 'no_payment_required' : 'unpaid',
    cancel_url: params.url('cancel_url') ?? null,
    client_reference_id: params.string('client_reference_id') ?? null,
    customer: customer ?? null,
    customer_creation: creation ?? (customer === undefined ? 'if_required' : null),
    customer_email: email ?? null,
    expires_at: expiresAt(params, context.now),
    metadata: params.metadata(),
    saved_payment_method_options: customer === undefined && !saving ? null : savingOptions(saves),
    allowed_payment_method_types: allowedTypes,
    payment_method_types: allowedTypes ?? ['card', 'us_bank_account'],
    // On by default, as in the dashboard of a new account, though this page shows dollars only.
    adaptive_pricing: { enabled: params.object('adaptive_pricing')?.boolean('enabled') ?? true },
    success_url: params.url('success_url') ?? null,
  };
  if (session.success_url === null) throw params.missing('success_url');
  params.oneOf('ui_mode', ['hosted_page']);
  params.ignore('billing_address_collection', 'locale', 'submit_type');
  const message = params.object('custom_text')?.object('submit')?.required('message');
  if (message !== undefined) session.custom_text.submit = { message };
  readTax(context, params, session, {
    updatesAddress: notes.updatesAddress,
    updatesName: updated.name === 'auto',
  });
  if (mode === 'setup') {
    session.setup_intent = newSetupIntent(context, session).id;
  }
  context.store.insert(session, { ...notes }, session.expires_at);
  return ok(session);
};

function whether(update: Params | undefined, member: 'address' | 'name') {
  return update?.oneOf(member, ['auto', 'never']);
}

function savingOptions(
  payment_method_save: 'enabled' | 'disabled',
): Stripe.Checkout.Session.SavedPaymentMethodOptions {
  return {
    allow_redisplay_filters: ['always'],
    payment_method_remove: 'disabled',
    payment_method_save,
  };
}

/** Stripe has to learn a known customer's address and name before it can tax and invoice it. */
function readTax(
  context: Context,
  params: Params,
  session: Stripe.Checkout.Session,
  { updatesAddress, updatesName }: { updatesAddress: boolean; updatesName: boolean },
): void {
  const isTaxed = params.object('automatic_tax')?.boolean('enabled') === true;
  const address = addressOfCustomer(context, session.customer);
  if (isTaxed && session.customer !== null && !address && !updatesAddress) {
    throw refused(
      'Automatic tax calculation in Checkout requires a valid address on the Customer. Add a valid address to the ' +
        "Customer or set either 'customer_update[address]' to 'auto' or 'customer_update[shipping]' to 'auto'.",
      'customer_tax_location_invalid',
    );
  }
  if (params.object('tax_id_collection')?.boolean('enabled') === true) {
    if (session.customer !== null && !updatesName) {
      throw refused(
        "Tax ID collection requires updating business name on the customer. Set 'customer_update[name]' to 'auto'.",
      );
    }
    session.tax_id_collection = { enabled: true, required: 'never' };
  }
  if (params.object('invoice_creation')?.boolean('enabled') === true) {
    session.invoice_creation = { enabled: true, invoice_data: BLANK_INVOICE_DATA };
  }
  if (!isTaxed) return;
  session.automatic_tax = {
    enabled: true,
    liability: { type: 'self' },
    provider: 'stripe',
    status: 'requires_location_inputs',
  };
  if (address) addTax(session, address);
}

const BLANK_INVOICE_DATA = {
  account_tax_ids: null,
  custom_fields: null,
  description: null,
  footer: null,
  issuer: null,
  metadata: null,
  rendering_options: null,
};

/** Adds the tax of the payer's address to what the session asks for. */
export function addTax(session: Stripe.Checkout.Session, address: Stripe.Address): void {
  const net = session.amount_subtotal ?? 0;
  const tax = taxOf(net, address);
  session.automatic_tax.status = 'complete';
  session.total_details = { amount_discount: 0, amount_shipping: 0, amount_tax: tax };
  session.amount_total = net + tax;
}

export const retrieveSession: Handler = (context, _params, id) => ok(getSession(context, id));

export const listSessions: Handler = (context, params) => {
  expireDueSessions(context);
  const where = {
    customer: params.string('customer'),
    payment_intent: params.string('payment_intent'),
    status: params.oneOf('status', ['open', 'complete', 'expired']),
  };
  return ok(listPage(context, params, 'checkout.session', '/v1/checkout/sessions', where));
};

export const expireSession: Handler = (context, _params, id) => {
  const session = getSession(context, id);
  if (session.status !== 'open') {
    throw refused(
      'Only Checkout Sessions with a status in ["open"] can be expired. ' +
        `This Checkout Session has a status of ${session.status}.`,
    );
  }
  expire(context, session);
  return ok(session);
};

/** The session's current state. A session that is due expires first. */
export function getSession(context: Context, id: string): Stripe.Checkout.Session {
  const session = context.store.find('checkout.session', id);
  if (!session) throw noSuch('checkout session', id);
  if (session.status === 'open' && session.expires_at <= context.now) expire(context, session);
  return session;
}

export function notesOfSession(context: Context, id: string): SessionNotes {
  return context.store.notesOf(id) as unknown as SessionNotes;
}

function expireDueSessions(context: Context): void {
  for (const session of context.store.due('checkout.session', context.now)) {
    expire(context, session);
  }
}

/** A declined attempt, if any, ends with the session. */
export function expire(context: Context, session: Stripe.Checkout.Session): void {
  if (typeof session.payment_intent === 'string') {
    cancel(context, getIntent(context, session.payment_intent), 'automatic');
  }
  session.status = 'expired';
  session.url = null;
  context.store.update(session, null);
  record(context, 'checkout.session.expired', session);
}

function lineItems(params: Params): { amount: number; title: string } {
  const items = params.list('line_items').map((item) => {
    const price = item.object('price_data');
    if (!price) throw item.missing('price_data');
    price.currency();
    const product = price.object('product_data');
    if (!product) throw price.missing('product_data');
    product.metadata();
    product.ignore('tax_code', 'description');
    price.oneOf('tax_behavior', ['exclusive']);
    const unitAmount = price.integer('unit_amount', { min: 0 });
    if (unitAmount === undefined) throw price.missing('unit_amount');
    const quantity = item.integer('quantity', { min: 1 });
    if (quantity === undefined) throw item.missing('quantity');
    return { amount: unitAmount * quantity, name: product.required('name') };
  });
  if (items.length === 0) throw params.missing('line_items');
  const amount = items.reduce((sum, item) => sum + item.amount, 0);
  checkAmount(amount, "The Checkout Session's total amount due");
  return { amount, title: items.map(({ name }) => name).join(', ') };
}

function expiresAt(params: Params, now: number): number {
  const { min, max } = EXPIRES_AFTER_SECONDS;
  const time = params.integer('expires_at') ?? now + max;
  if (time < now + min - CLOCK_SLACK_SECONDS) {
    throw invalidParam(
      'expires_at',
      'The `expires_at` timestamp must be at least 30 minutes away.',
    );
  }
  if (time > now + max + CLOCK_SLACK_SECONDS) {
    throw invalidParam('expires_at', 'The `expires_at` timestamp must be less than 24 hours away.');
  }
  return time;
}

function blankSession(context: Context, amount: number | null): Stripe.Checkout.Session {
  const id = newId('cs_test');
  return {
    id,
    object: 'checkout.session',
    adaptive_pricing: null,
    after_expiration: null,
    allow_promotion_codes: null,
    allowed_payment_method_types: null,
    amount_subtotal: amount,
    amount_total: amount,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    billing_address_collection: null,
    cancel_url: null,
    client_reference_id: null,
    client_secret: null,
    collected_information: null,
    consent: null,
    consent_collection: null,
    created: context.now,
    currency: 'usd',
    currency_conversion: null,
    custom_fields: [],
    custom_text: {
      after_submit: null,
      shipping_address: null,
      submit: null,
      terms_of_service_acceptance: null,
    },
    customer: null,
    customer_account: null,
    customer_creation: null,
    customer_details: null,
    customer_email: null,
    discounts: [],
    expires_at: 0,
    integration_identifier: null,
    invoice: null,
    invoice_creation: null,
    livemode: false,
    locale: null,
    managed_payments: null,
    metadata: {},
    mode: 'payment',
    origin_context: null,
    payment_intent: null,
    payment_link: null,
    payment_method_collection: 'if_required',
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: [],
    payment_status: 'unpaid',
    permissions: null,
    recovered_from: null,
    saved_payment_method_options: null,
    setup_intent: null,
    shipping_address_collection: null,
    shipping_cost: null,
    shipping_options: [],
    status: 'open',
    submit_type: null,
    subscription: null,
    success_url: null,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: 'hosted_page',
    url: `${context.baseUrl}/pay/${id}`,
    wallet_options: null,
  };
}
