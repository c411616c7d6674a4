/**
 * Payment intents and their confirmation: requires_payment_method -> requires_confirmation -> (requires_action |
 * processing) -> succeeded, or canceled. A decline is recorded (a failed charge, `last_payment_error`, events), and the
 * intent can still be paid with another card.
 */
import type Stripe from 'stripe';
import { AUTHENTICATION_REQUIRED, EXPIRED, type Decline } from '../cards.ts';
import { createCharge } from './charges.ts';
import { ok, type Reply } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { getCustomer } from './customers.ts';
import { noSuch, refused } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId, randomText } from '../ids.ts';
import { listPage } from '../http/lists.ts';
import type { Params } from '../http/params.ts';
import { suffixIn } from './statement-descriptor.ts';
import { checkCalculation } from './tax.ts';
import { isSetUp, usageOf } from './setup-intents.ts';
import {
  attachTo,
  cardError,
  hasExpired,
  sourceOfMethod,
  usePaymentMethod,
} from './payment-methods.ts';

/** Stripe's limits for dollars. */
const AMOUNT_CENTS = { min: 50, max: 99_999_999 } as const;

/** Whether the customer can authenticate: on the hosted page yes, with a saved card no, else at `returnUrl`'s bank. */
export type Presence = 'on_session' | 'off_session' | 'unknown';

export interface Confirmation {
  readonly presence: Presence;
  readonly returnUrl?: string | undefined;
}

export interface IntentFields {
  readonly amount: number;
  readonly customer: string | null;
  readonly description: string | null;
  readonly descriptorSuffix: string | null;
  readonly metadata: Stripe.Metadata;
  readonly setupFutureUsage: Stripe.PaymentIntent.SetupFutureUsage | null;
  /** The same for cards alone. */
  readonly cardFutureUsage?: Stripe.PaymentIntent.SetupFutureUsage | null;
  /** The accepted types of payment method. Null accepts cards only. */
  readonly allowedTypes: string[] | null;
}

export function newIntent(context: Context, fields: IntentFields): Stripe.PaymentIntent {
  const id = newId('pi');
  const intent: Stripe.PaymentIntent = {
    id,
    object: 'payment_intent',
    allowed_payment_method_types: fields.allowedTypes,
    amount: fields.amount,
    amount_capturable: 0,
    amount_received: 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: 'automatic',
    client_secret: `${id}_secret_${randomText(24)}`,
    confirmation_method: 'automatic',
    created: context.now,
    currency: 'usd',
    customer: fields.customer,
    customer_account: null,
    description: fields.description,
    excluded_payment_method_types: null,
    last_payment_error: null,
    latest_charge: null,
    livemode: false,
    managed_payments: null,
    metadata: fields.metadata,
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: fields.cardFutureUsage
      ? { card: { ...BLANK_CARD_OPTIONS, setup_future_usage: fields.cardFutureUsage } }
      : {},
    payment_method_types: fields.allowedTypes ?? ['card'],
    payment_record: null,
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: fields.setupFutureUsage,
    shipping: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: fields.descriptorSuffix,
    status: 'requires_payment_method',
    transfer_data: null,
    transfer_group: null,
  };
  context.store.insert(intent);
  record(context, 'payment_intent.created', intent);
  return intent;
}

/** Tries to take the amount. Changes and stores `intent`, and returns the reason when the payment was declined. */
export function confirm(
  context: Context,
  intent: Stripe.PaymentIntent,
  method: Stripe.PaymentMethod,
  { presence, returnUrl }: Confirmation,
): Decline | undefined {
  const source = sourceOfMethod(context, method);
  intent.payment_method = method.id;
  intent.last_payment_error = null;
  intent.next_action = null;
  if (source.type === 'us_bank_account') {
    intent.status = 'processing';
    context.store.update(intent, context.now + context.settleAfterSeconds);
    record(context, 'payment_intent.processing', intent);
    return undefined;
  }
  const { authentication } = source;
  const isNeeded =
    authentication === 'always' ||
    (authentication === 'unless_set_up' &&
      !(presence === 'off_session' && isSetUp(context, method)));
  if (isNeeded && presence === 'unknown') {
    intent.status = 'requires_action';
    const url = `${context.baseUrl}/pay/${intent.id}`;
    intent.next_action =
      returnUrl === undefined
        ? { type: 'use_stripe_sdk', use_stripe_sdk: {} }
        : { type: 'redirect_to_url', redirect_to_url: { return_url: returnUrl, url } };
    context.store.update(intent);
    record(context, 'payment_intent.requires_action', intent);
    return undefined;
  }
  const absent = isNeeded && presence === 'off_session';
  const refused = hasExpired(context, method) ? EXPIRED : source.decline;
  const decline = absent ? AUTHENTICATION_REQUIRED : refused;
  if (decline) fail(context, intent, method, decline);
  else succeed(context, intent, method);
  return decline;
}

export function succeed(
  context: Context,
  intent: Stripe.PaymentIntent,
  method: Stripe.PaymentMethod,
): void {
  intent.status = 'succeeded';
  intent.amount_received = intent.amount;
  intent.latest_charge = createCharge(context, intent, method, undefined).id;
  if (usageOf(intent) !== null && typeof intent.customer === 'string') {
    attachTo(context, method, intent.customer);
  }
  context.store.update(intent, null);
  record(context, 'payment_intent.succeeded', intent);
}

export function fail(
  context: Context,
  intent: Stripe.PaymentIntent,
  method: Stripe.PaymentMethod,
  decline: Decline,
): void {
  const charge = createCharge(context, intent, method, decline);
  intent.status = 'requires_payment_method';
  intent.payment_method = null;
  intent.latest_charge = charge.id;
  intent.last_payment_error = {
    ...cardError(decline),
    charge: charge.id,
    payment_method: method,
  } as Stripe.PaymentIntent.LastPaymentError;
  context.store.update(intent, null);
  record(context, 'payment_intent.payment_failed', intent);
}

/** The cardholder did not confirm it. No charge is made of it. */
export function refuseAuthentication(
  context: Context,
  intent: Stripe.PaymentIntent,
  method: Stripe.PaymentMethod,
): void {
  intent.status = 'requires_payment_method';
  intent.payment_method = null;
  intent.last_payment_error = {
    type: 'invalid_request_error',
    code: 'payment_intent_authentication_failure',
    message: 'The provided PaymentMethod has failed authentication.',
    payment_method: method,
  };
  context.store.update(intent);
  record(context, 'payment_intent.payment_failed', intent);
}

export function cancel(
  context: Context,
  intent: Stripe.PaymentIntent,
  reason: Stripe.PaymentIntent.CancellationReason | null,
): void {
  intent.status = 'canceled';
  intent.canceled_at = context.now;
  intent.cancellation_reason = reason;
  context.store.update(intent);
  record(context, 'payment_intent.canceled', intent);
}

export const createPaymentIntent: Handler = (context, params) => {
  const amount = params.integer('amount');
  if (amount === undefined) throw params.missing('amount');
  params.currency();
  checkAmount(amount, 'Amount', 'amount');
  const customer = params.string('customer');
  if (customer !== undefined) getCustomer(context, customer, 'customer');
  const calculation = params
    .object('hooks')
    ?.object('inputs')
    ?.object('tax')
    ?.string('calculation');
  if (calculation !== undefined) checkCalculation(context, calculation, amount);
  const intent = newIntent(context, {
    amount,
    customer: customer ?? null,
    description: params.string('description') ?? null,
    descriptorSuffix: suffixIn(params),
    metadata: params.metadata(),
    setupFutureUsage: params.oneOf('setup_future_usage', ['off_session', 'on_session']) ?? null,
    allowedTypes: params.strings('allowed_payment_method_types') ?? null,
  });
  if (calculation !== undefined) {
    intent.hooks = { inputs: { tax: { calculation } } };
    context.store.update(intent);
  }
  params.ignore('receipt_email');
  const method = methodIn(context, params);
  const presence = presenceIn(params);
  const returnUrl = params.url('return_url');
  if (params.boolean('confirm')) return confirmed(context, intent, method, { presence, returnUrl });
  if (presence !== 'unknown') {
    throw refused('off_session can only be set when confirm is true.', undefined, 'off_session');
  }
  if (method) {
    checkMethod(intent, method);
    intent.payment_method = method.id;
    intent.status = 'requires_confirmation';
    context.store.update(intent);
  }
  return ok(intent);
};

export const confirmPaymentIntent: Handler = (context, params, id) => {
  const intent = getIntent(context, id);
  const method = methodIn(context, params);
  const presence = presenceIn(params);
  const returnUrl = params.url('return_url');
  cardOptions(intent, params, presence);
  checkStatus(intent, 'confirm', [
    'requires_payment_method',
    'requires_confirmation',
    'requires_action',
  ]);
  const kept = typeof intent.payment_method === 'string' ? intent.payment_method : undefined;
  const chosen = method ?? (kept && usePaymentMethod(context, kept, 'payment_method'));
  return confirmed(context, intent, chosen || undefined, { presence, returnUrl });
};

export const cancelPaymentIntent: Handler = (context, params, id) => {
  const intent = getIntent(context, id);
  const reason = params.oneOf('cancellation_reason', [
    'abandoned',
    'duplicate',
    'fraudulent',
    'requested_by_customer',
  ]);
  const [session] = context.store.all('checkout.session', { payment_intent: id });
  if (session) {
    throw refused(
      `You cannot cancel the PaymentIntent of a Checkout Session. Expire ${session.id} instead.`,
      'payment_intent_unexpected_state',
    );
  }
  checkStatus(intent, 'cancel', [
    'requires_payment_method',
    'requires_confirmation',
    'requires_action',
  ]);
  cancel(context, intent, reason ?? null);
  return ok(intent);
};

export const updatePaymentIntent: Handler = (context, params, id) => {
  const intent = getIntent(context, id);
  intent.description = params.string('description') ?? intent.description;
  intent.statement_descriptor_suffix = suffixIn(params) ?? intent.statement_descriptor_suffix;
  intent.metadata = params.metadata(intent.metadata);
  context.store.update(intent);
  return ok(intent);
};

export const retrievePaymentIntent: Handler = (context, params, id) => {
  params.ignore('client_secret');
  return ok(getIntent(context, id));
};

export const listPaymentIntents: Handler = (context, params) => {
  const where = { customer: params.string('customer') };
  return ok(listPage(context, params, 'payment_intent', '/v1/payment_intents', where));
};

export function getIntent(context: Context, id: string, param?: string): Stripe.PaymentIntent {
  const intent = context.store.find('payment_intent', id);
  if (!intent) throw noSuch('payment_intent', id, param);
  return intent;
}

export function checkAmount(cents: number, what: string, param?: string): void {
  if (cents < AMOUNT_CENTS.min) {
    throw refused(`${what} must be at least $0.50 usd`, 'amount_too_small', param);
  }
  if (cents > AMOUNT_CENTS.max) {
    throw refused(`${what} must be no more than $999,999.99`, 'amount_too_large', param);
  }
}

/** A decline is returned, not thrown: the intent and its failed charge are kept. */
function confirmed(
  context: Context,
  intent: Stripe.PaymentIntent,
  method: Stripe.PaymentMethod | undefined,
  confirmation: Confirmation,
): Reply {
  if (!method) {
    throw refused(
      'You cannot confirm this PaymentIntent because it is missing a payment method.',
      'payment_intent_unexpected_state',
    );
  }
  checkMethod(intent, method);
  const decline = confirm(context, intent, method, confirmation);
  if (!decline) return ok(intent);
  const facts = { charge: intent.latest_charge, payment_intent: intent, payment_method: method };
  return { status: 402, body: { error: { ...cardError(decline), ...facts } } };
}

function checkMethod(intent: Stripe.PaymentIntent, method: Stripe.PaymentMethod): void {
  if (!intent.payment_method_types.includes(method.type)) {
    throw refused(
      `The PaymentMethod provided (${method.type}) is not allowed for this PaymentIntent.`,
      'payment_intent_incompatible_payment_method',
      'payment_method',
    );
  }
  if (method.customer !== null && method.customer !== intent.customer) {
    throw refused(
      `The PaymentMethod ${method.id} belongs to a Customer: include that Customer on the PaymentIntent.`,
      undefined,
      'payment_method',
    );
  }
}

function checkStatus(
  intent: Stripe.PaymentIntent,
  verb: string,
  allowed: readonly Stripe.PaymentIntent.Status[],
): void {
  if (!allowed.includes(intent.status)) {
    throw refused(
      `You cannot ${verb} this PaymentIntent because it has a status of ${intent.status}.`,
      'payment_intent_unexpected_state',
    );
  }
}

function methodIn(context: Context, params: Params): Stripe.PaymentMethod | undefined {
  const id = params.string('payment_method');
  return id === undefined ? undefined : usePaymentMethod(context, id, 'payment_method');
}

/** Stripe takes the use of a stored card only when the customer is away, and its set-up only when not. */
function cardOptions(intent: Stripe.PaymentIntent, params: Params, presence: Presence): void {
  const card = params.object('payment_method_options')?.object('card');
  if (!card) return;
  const kinds = ['installment', 'recurring', 'unscheduled'];
  const stored = card.oneOf('stored_credential_usage', kinds);
  if (stored !== undefined && presence !== 'off_session') {
    throw refused('stored_credential_usage can only be set when off_session is true.');
  }
  card.oneOf('setup_credential_usage', kinds);
  const usage = card.oneOf('setup_future_usage', ['off_session', 'on_session']);
  if (stored !== undefined && usage !== undefined) {
    throw refused('stored_credential_usage cannot be set together with setup_future_usage.');
  }
  if (usage === undefined) return;
  intent.payment_method_options = { card: { ...BLANK_CARD_OPTIONS, setup_future_usage: usage } };
}

const BLANK_CARD_OPTIONS = {
  installments: null,
  mandate_options: null,
  network: null,
  request_three_d_secure: 'automatic',
} as const;

/** `off_session` is true, false, or (as on Stripe) `one_off` or `recurring`. */
function presenceIn(params: Params): Presence {
  const text = params.oneOf('off_session', ['true', 'false', 'one_off', 'recurring']);
  return text === undefined || text === 'false' ? 'unknown' : 'off_session';
}
