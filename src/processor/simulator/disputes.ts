/**
 * Disputes: opened and closed by the controls, as the cardholder's bank would. Opening takes the amount and a
 * fee out of our balance at once; only a won dispute brings them back.
 */
import type Stripe from 'stripe';
import { DISPUTE_FEE_CENTS, move } from './balance-transactions.ts';
import { succeededChargeOf } from './charges.ts';
import { ok } from './answers.ts';
import type { Context, Handler } from './context.ts';
import { noSuch, refused } from './errors.ts';
import { record } from './events.ts';
import { newId } from './ids.ts';
import { listPage } from './lists.ts';
import { getIntent } from './payment-intents.ts';

const ANSWER_WITHIN_SECONDS = 14 * 24 * 60 * 60;

export interface DisputeOrder {
  readonly paymentIntent: string;
  /** Cents; all that is not refunded when left out. */
  readonly amount: number | undefined;
  readonly reason: string;
}

export function openDispute(context: Context, order: DisputeOrder): Stripe.Dispute {
  const charge = succeededChargeOf(context, getIntent(context, order.paymentIntent));
  if (!charge) throw refused(`${order.paymentIntent} has no successful charge to dispute.`);
  if (charge.disputed) throw refused(`${charge.id} is disputed already.`);
  const left = charge.amount - charge.amount_refunded;
  const amount = order.amount ?? left;
  if (amount < 1 || amount > charge.amount) {
    throw refused(`A dispute of ${charge.id} is 1 to ${charge.amount} cents, not ${amount}.`);
  }
  const dispute: Stripe.Dispute = {
    id: newId('dp'),
    object: 'dispute',
    amount,
    balance_transactions: [],
    charge: charge.id,
    created: context.now,
    currency: charge.currency,
    enhanced_eligibility_types: [],
    // What is submitted to the bank; nothing here reads it.
    evidence: {} as Stripe.Dispute.Evidence,
    evidence_details: {
      due_by: context.now + ANSWER_WITHIN_SECONDS,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
    } as Stripe.Dispute.EvidenceDetails,
    intended_submission_method: null,
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: charge.payment_intent,
    reason: order.reason,
    status: 'needs_response',
  };
  const movement = { type: 'adjustment', category: 'dispute', source: dispute.id } as const;
  const taken = move(context, { ...movement, amount: -amount, fee: DISPUTE_FEE_CENTS });
  dispute.balance_transactions.push(taken);
  charge.disputed = true;
  context.store.insert(dispute);
  context.store.update(charge);
  record(context, 'charge.dispute.created', dispute);
  record(context, 'charge.dispute.funds_withdrawn', dispute);
  return dispute;
}

export function closeDispute(context: Context, id: string, status: 'won' | 'lost'): Stripe.Dispute {
  const dispute = getDispute(context, id);
  if (dispute.status === 'won' || dispute.status === 'lost') {
    throw refused(`Dispute ${id} is ${dispute.status} already.`);
  }
  dispute.status = status;
  if (status === 'won') {
    const movement = { type: 'adjustment', category: 'dispute_reversal', source: id } as const;
    const { amount } = dispute;
    const returned = move(context, { ...movement, amount, fee: -DISPUTE_FEE_CENTS });
    dispute.balance_transactions.push(returned);
    dispute.is_charge_refundable = true;
  }
  context.store.update(dispute);
  record(context, 'charge.dispute.closed', dispute);
  if (status === 'won') record(context, 'charge.dispute.funds_reinstated', dispute);
  return dispute;
}

export const retrieveDispute: Handler = (context, _params, id) => ok(getDispute(context, id));

export const listDisputes: Handler = (context, params) => {
  const where = {
    charge: params.string('charge'),
    payment_intent: params.string('payment_intent'),
  };
  return ok(listPage(context, params, 'dispute', '/v1/disputes', where));
};

function getDispute(context: Context, id: string): Stripe.Dispute {
  const dispute = context.store.find('dispute', id);
  if (!dispute) throw noSuch('dispute', id);
  return dispute;
}
