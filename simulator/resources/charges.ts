/** Charges: one attempt to take an intent's amount, succeeded (with its balance transaction) or failed. */
import type Stripe from 'stripe';
import { chargeFee, move } from './balance-transactions.ts';
import type { Decline } from '../cards.ts';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { noSuch } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';
import { laterOf } from './payment-methods.ts';
import { descriptorOf } from './statement-descriptor.ts';

export function createCharge(
  context: Context,
  intent: Stripe.PaymentIntent,
  method: Stripe.PaymentMethod,
  decline: Decline | undefined,
): Stripe.Charge {
  const charge: Stripe.Charge = {
    id: newId('ch'),
    object: 'charge',
    amount: intent.amount,
    amount_captured: decline ? 0 : intent.amount,
    amount_refunded: 0,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: null,
    billing_details: { ...method.billing_details },
    calculated_statement_descriptor: descriptorOf(intent.statement_descriptor_suffix),
    captured: !decline,
    created: context.now,
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    disputed: false,
    failure_balance_transaction: null,
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    fraud_details: {},
    livemode: false,
    metadata: intent.metadata,
    on_behalf_of: null,
    outcome: outcomeOf(decline),
    paid: !decline,
    payment_intent: intent.id,
    payment_method: method.id,
    payment_method_details: detailsOf(method),
    receipt_email: null,
    receipt_number: null,
    receipt_url: null,
    refunded: false,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: intent.statement_descriptor_suffix,
    status: decline ? 'failed' : 'succeeded',
    transfer_data: null,
    transfer_group: null,
  };
  if (!decline) {
    const movement = { type: 'charge', category: 'charge', source: charge.id } as const;
    const { amount } = intent;
    charge.balance_transaction = move(context, {
      ...movement,
      amount,
      fee: chargeFee(amount),
    }).id;
  }
  const later = decline ? undefined : laterOf(context, method)?.kind;
  const isToChange = later === 'dispute' || later === 'fraud_warning';
  context.store.insert(charge, {}, isToChange ? context.now : null);
  record(context, decline ? 'charge.failed' : 'charge.succeeded', charge);
  return charge;
}

/** The successful charge of an intent. */
export function succeededChargeOf(
  context: Context,
  intent: Stripe.PaymentIntent,
): Stripe.Charge | undefined {
  if (intent.status !== 'succeeded') return undefined;
  return context.store.follow('charge', intent.latest_charge);
}

export const retrieveCharge: Handler = ({ store }, _params, id) => {
  const charge = store.find('charge', id);
  if (!charge) throw noSuch('charge', id);
  return ok(charge);
};

export const listCharges: Handler = (context, params) => {
  const where = {
    customer: params.string('customer'),
    payment_intent: params.string('payment_intent'),
  };
  return ok(listPage(context, params, 'charge', '/v1/charges', where));
};

function outcomeOf(decline: Decline | undefined): Stripe.Charge.Outcome {
  return {
    advice_code: decline?.adviceCode ?? null,
    network_advice_code: null,
    network_decline_code: null,
    network_status: decline ? 'declined_by_network' : 'approved_by_network',
    reason: decline?.declineCode ?? null,
    risk_level: 'normal',
    seller_message: decline
      ? 'The bank did not return any further details with this decline.'
      : 'Payment complete.',
    type: decline ? 'issuer_declined' : 'authorized',
  };
}

function detailsOf({ type, card, us_bank_account: account }: Stripe.PaymentMethod) {
  const details = card ? cardDetails(card) : bankDetails(account);
  return { type, [type]: details } as unknown as Stripe.Charge.PaymentMethodDetails;
}

function cardDetails(card: Stripe.PaymentMethod.Card): Stripe.Charge.PaymentMethodDetails.Card {
  const { brand, checks, country, exp_month, exp_year, funding, last4, regulated_status } = card;
  return {
    amount_authorized: null,
    authorization_code: null,
    brand,
    checks,
    country,
    electronic_commerce_indicator: null,
    exp_month,
    exp_year,
    funding,
    installments: null,
    last4,
    mandate: null,
    network: brand,
    network_transaction_id: null,
    regulated_status,
    three_d_secure: null,
    transaction_link_id: null,
    wallet: null,
  };
}

function bankDetails(
  account: Stripe.PaymentMethod.UsBankAccount | undefined,
): Stripe.Charge.PaymentMethodDetails.UsBankAccount {
  return {
    account_holder_type: account?.account_holder_type ?? null,
    account_type: account?.account_type ?? null,
    bank_name: account?.bank_name ?? null,
    fingerprint: account?.fingerprint ?? null,
    last4: account?.last4 ?? null,
    payment_reference: null,
    routing_number: account?.routing_number ?? null,
  };
}
