/** Payment methods: cards (and bank accounts, created only by the hosted page) and their owners. */
import type Stripe from 'stripe';
import {
  findSource,
  LOST_CARD,
  numberOfTestId,
  type Decline,
  type Later,
  type Source,
} from '../cards.ts';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { getCustomer } from './customers.ts';
import { ApiError, noSuch, refused } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';

export function createPaymentMethod(context: Context, source: Source): Stripe.PaymentMethod {
  const method: Stripe.PaymentMethod = {
    id: newId('pm'),
    object: 'payment_method',
    allow_redisplay: 'unspecified',
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    created: context.now,
    customer: null,
    customer_account: null,
    livemode: false,
    metadata: {},
    type: source.type,
    ...(source.type === 'card'
      ? { card: cardFields(source.number, source.brand) }
      : { us_bank_account: bankFields(source.number) }),
  };
  context.store.insert(method, { number: source.number });
  return method;
}

/** The payment method with this id. Stripe's test ids (`pm_card_visa`) create a new one. */
export function usePaymentMethod(
  context: Context,
  id: string,
  param: string,
): Stripe.PaymentMethod {
  const ready = findSource(numberOfTestId(id) ?? '');
  if (ready) return createPaymentMethod(context, ready);
  const method = context.store.find('payment_method', id);
  if (!method) throw noSuch('PaymentMethod', id, param);
  return method;
}

export function sourceOfMethod(context: Context, method: Stripe.PaymentMethod): Source {
  const source = findSource(String(context.store.notesOf(method.id)['number']));
  if (!source) throw new Error(`no source behind ${method.id}`);
  return source;
}

/** What the card's bank will do. */
export function laterOf(context: Context, method: Stripe.PaymentMethod): Later | undefined {
  const source = sourceOfMethod(context, method);
  return source.type === 'card' ? source.later : undefined;
}

/** Makes a card expire: it stays saved, and every later charge is refused. */
export function expireCard(context: Context, id: string): Stripe.PaymentMethod {
  const method = getPaymentMethod(context, id);
  if (!method.card) throw refused(`${id} is no card.`);
  method.card.exp_year = new Date(context.now * 1_000).getUTCFullYear() - 1;
  context.store.update(method);
  return method;
}

/** Reports a card as lost: it stays saved, and its bank declines every later charge permanently. */
export function loseCard(context: Context, id: string): Stripe.PaymentMethod {
  const method = getPaymentMethod(context, id);
  if (!method.card) throw refused(`${id} is no card.`);
  context.store.note(id, { ...context.store.notesOf(id), number: LOST_CARD });
  return method;
}

/** A card is valid until the end of its month. */
export function hasExpired({ now }: Context, { card }: Stripe.PaymentMethod): boolean {
  return card !== undefined && Date.UTC(card.exp_year, card.exp_month) <= now * 1_000;
}

export function attachTo(context: Context, method: Stripe.PaymentMethod, customer: string): void {
  if (method.customer === customer) return;
  if (method.customer !== null) {
    throw refused(
      'The payment method you provided has already been attached to a customer.',
      'payment_method_unexpected_state',
    );
  }
  method.customer = customer;
  context.store.update(method);
  record(context, 'payment_method.attached', method);
}

/** Checkout offers the card again. */
export function allowRedisplay(context: Context, method: Stripe.PaymentMethod): void {
  method.allow_redisplay = 'always';
  context.store.update(method);
}

/** Saving a card asks its bank, so a card that always declines is refused here (402). */
export const attachPaymentMethod: Handler = (context, params, id) => {
  const customer = getCustomer(context, params.required('customer'), 'customer');
  const method = usePaymentMethod(context, id, 'id');
  const source = sourceOfMethod(context, method);
  if (source.type === 'card' && source.declines === 'always' && source.decline) {
    throw new ApiError(402, cardError(source.decline));
  }
  attachTo(context, method, customer.id);
  return ok(method);
};

export const detachPaymentMethod: Handler = (context, _params, id) => {
  const method = getPaymentMethod(context, id);
  if (method.customer === null) {
    throw refused('The payment method you provided is not attached to a customer.');
  }
  method.customer = null;
  context.store.update(method);
  record(context, 'payment_method.detached', method);
  return ok(method);
};

export const retrievePaymentMethod: Handler = (context, _params, id) =>
  ok(getPaymentMethod(context, id));

export const listPaymentMethods: Handler = (context, params) => {
  const where = { customer: params.required('customer'), type: params.string('type') };
  getCustomer(context, where.customer, 'customer');
  return ok(listPage(context, params, 'payment_method', '/v1/payment_methods', where));
};

export const listCustomerPaymentMethods: Handler = (context, params, customer) => {
  getCustomer(context, customer);
  const url = `/v1/customers/${customer}/payment_methods`;
  return ok(
    listPage(context, params, 'payment_method', url, { customer, type: params.string('type') }),
  );
};

/** The `error` of a 402. */
export function cardError(decline: Decline) {
  return {
    type: 'card_error',
    code: decline.code,
    decline_code: decline.declineCode,
    message: decline.message,
    ...(decline.adviceCode && { advice_code: decline.adviceCode }),
  } as const;
}

function getPaymentMethod(context: Context, id: string): Stripe.PaymentMethod {
  const method = context.store.find('payment_method', id);
  if (!method) throw noSuch('PaymentMethod', id);
  return method;
}

function cardFields(number: string, brand: string): Stripe.PaymentMethod.Card {
  return {
    brand,
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: 'pass' },
    country: 'US',
    display_brand: brand,
    exp_month: 12,
    exp_year: new Date().getUTCFullYear() + 3,
    funding: 'credit',
    generated_from: null,
    last4: number.slice(-4),
    networks: { available: [brand], preferred: null },
    regulated_status: 'unregulated',
    three_d_secure_usage: { supported: true },
    wallet: null,
  };
}

function bankFields(number: string): Stripe.PaymentMethod.UsBankAccount {
  return {
    account_holder_type: 'individual',
    account_type: 'checking',
    bank_name: 'STRIPE TEST BANK',
    financial_connections_account: null,
    fingerprint: null,
    last4: number.slice(-4),
    networks: null,
    routing_number: '110000000',
    status_details: null,
  };
}
