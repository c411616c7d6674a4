/**
 * Disputes: opened and closed by the controls, as the cardholder's bank would. Opening takes the amount and a
 * fee out of our balance at once. A won dispute brings the amount back, and the fee is lost in any case.
 */
import type Stripe from 'stripe';
import { endWarnings } from './fraud-warnings.ts';
import { endReviews } from './reviews.ts';
import { DISPUTE_FEE_CENTS, move } from './balance-transactions.ts';
import { succeededChargeOf } from './charges.ts';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { noSuch, refused } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';
import { getIntent } from './payment-intents.ts';

const ANSWER_WITHIN_SECONDS = 14 * 24 * 60 * 60;

const NO_EVIDENCE: Stripe.Dispute.Evidence = {
  access_activity_log: null,
  billing_address: null,
  cancellation_policy: null,
  cancellation_policy_disclosure: null,
  cancellation_rebuttal: null,
  customer_communication: null,
  customer_email_address: null,
  customer_name: null,
  customer_purchase_ip: null,
  customer_signature: null,
  duplicate_charge_documentation: null,
  duplicate_charge_explanation: null,
  duplicate_charge_id: null,
  enhanced_evidence: {},
  product_description: null,
  receipt: null,
  refund_policy: null,
  refund_policy_disclosure: null,
  refund_refusal_explanation: null,
  service_date: null,
  service_documentation: null,
  shipping_address: null,
  shipping_carrier: null,
  shipping_date: null,
  shipping_documentation: null,
  shipping_tracking_number: null,
  uncategorized_file: null,
  uncategorized_text: null,
};

const OPEN: readonly Stripe.Dispute.Status[] = ['needs_response', 'under_review'];
const OPEN_INQUIRY: readonly Stripe.Dispute.Status[] = [
  'warning_needs_response',
  'warning_under_review',
];

export interface DisputeOrder {
  readonly paymentIntent: string;
  /** Cents. Defaults to the amount that is neither refunded nor disputed. */
  readonly amount: number | undefined;
  readonly reason: string;
  /** An inquiry: no money moves until the bank escalates it. */
  readonly isInquiry: boolean;
  /**
   * That of the bank. The simulator does not convert: the amount stays the same number. Defaults to that of
   * the charge.
   */
  readonly currency: string | undefined;
}

function undisputedCents({ store }: Context, { id, amount: charged }: Stripe.Charge): number {
  const disputed = store
    .all('dispute', { charge: id })
    .filter(({ status }) => status !== 'won' && status !== 'warning_closed')
    .reduce((sum, { amount }) => sum + amount, 0);
  return charged - disputed;
}

/** The part of the charge that has been neither refunded nor disputed. */
export function disputableCents(context: Context, charge: Stripe.Charge): number {
  return Math.min(undisputedCents(context, charge), charge.amount - charge.amount_refunded);
}

export function openDispute(context: Context, order: DisputeOrder): Stripe.Dispute {
  const charge = succeededChargeOf(context, getIntent(context, order.paymentIntent));
  if (!charge) throw refused(`${order.paymentIntent} has no successful charge to dispute.`);
  const left = undisputedCents(context, charge);
  const amount = order.amount ?? disputableCents(context, charge);
  if (amount < 1 || amount > left) {
    throw refused(`A dispute of ${charge.id} is 1 to ${left} cents, not ${amount}.`);
  }
  const dispute: Stripe.Dispute = {
    id: newId('dp'),
    object: 'dispute',
    amount,
    balance_transactions: [],
    charge: charge.id,
    created: context.now,
    currency: order.currency ?? charge.currency,
    enhanced_eligibility_types: [],
    evidence: NO_EVIDENCE,
    evidence_details: {
      due_by: context.now + ANSWER_WITHIN_SECONDS,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: 'not_submitted',
    },
    intended_submission_method: null,
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: charge.payment_intent,
    reason: order.reason,
    status: order.isInquiry ? 'warning_needs_response' : 'needs_response',
  };
  context.store.insert(dispute);
  if (!order.isInquiry) withdraw(context, dispute);
  record(context, 'charge.dispute.created', dispute);
  if (!order.isInquiry) record(context, 'charge.dispute.funds_withdrawn', dispute);
  return dispute;
}

export function escalateDispute(context: Context, id: string): Stripe.Dispute {
  const dispute = getDispute(context, id);
  if (!OPEN_INQUIRY.includes(dispute.status)) throw refused(`${id} is not an open inquiry.`);
  dispute.status = 'needs_response';
  withdraw(context, dispute);
  record(context, 'charge.dispute.updated', dispute);
  record(context, 'charge.dispute.funds_withdrawn', dispute);
  return dispute;
}

/** A lost dispute can be won later: banks change their minds. */
export function closeDispute(
  context: Context,
  id: string,
  status: 'won' | 'lost' | 'warning_closed',
): Stripe.Dispute {
  const dispute = getDispute(context, id);
  const from = status === 'warning_closed' ? OPEN_INQUIRY : OPEN;
  if (!from.includes(dispute.status) && !(dispute.status === 'lost' && status === 'won')) {
    throw refused(`Dispute ${id} is ${dispute.status}, and cannot be ${status}.`);
  }
  dispute.status = status;
  if (status === 'won') {
    const movement = { type: 'adjustment', category: 'dispute_reversal', source: id } as const;
    const { amount } = dispute;
    const returned = move(context, { ...movement, amount, fee: 0 });
    dispute.balance_transactions.push(returned);
    dispute.is_charge_refundable = true;
  }
  context.store.update(dispute);
  record(context, 'charge.dispute.closed', dispute);
  if (status === 'won') record(context, 'charge.dispute.funds_reinstated', dispute);
  return dispute;
}

function withdraw(context: Context, dispute: Stripe.Dispute): void {
  const { id, amount } = dispute;
  const movement = { type: 'adjustment', category: 'dispute', source: id } as const;
  const taken = move(context, { ...movement, amount: -amount, fee: DISPUTE_FEE_CENTS });
  dispute.balance_transactions.push(taken);
  context.store.update(dispute);
  const charge = context.store.follow('charge', dispute.charge);
  if (!charge) throw new Error(`${id} has no charge`);
  const disputed = { ...charge, disputed: true };
  context.store.update(disputed);
  endWarnings(context, disputed);
  endReviews(context, disputed);
}

/**
 * Evidence for the bank. As in Stripe's test mode, the text `winning_evidence` wins, `losing_evidence` loses and
 * `escalate_inquiry_evidence` makes a dispute of an inquiry. Other evidence stays under review.
 */
export const updateDispute: Handler = (context, params, id) => {
  const dispute = getDispute(context, id);
  const text = params.object('evidence')?.string('uncategorized_text');
  const isSubmitted = params.boolean('submit') ?? true;
  dispute.metadata = params.metadata(dispute.metadata);
  if (text === undefined) {
    context.store.update(dispute);
    return ok(dispute);
  }
  const isInquiry = OPEN_INQUIRY.includes(dispute.status);
  if (!isInquiry && !OPEN.includes(dispute.status))
    throw refused('This dispute is already closed.');
  dispute.evidence.uncategorized_text = text;
  dispute.evidence_details.has_evidence = true;
  if (isSubmitted) {
    dispute.evidence_details.submission_count += 1;
    dispute.evidence_details.submission_method = 'manual';
    dispute.status = isInquiry ? 'warning_under_review' : 'under_review';
  }
  context.store.update(dispute);
  record(context, 'charge.dispute.updated', dispute);
  return ok(isSubmitted ? decided(context, dispute, text, isInquiry) : dispute);
};

function decided(
  context: Context,
  dispute: Stripe.Dispute,
  text: string,
  isInquiry: boolean,
): Stripe.Dispute {
  if (isInquiry) {
    if (text === 'winning_evidence') return closeDispute(context, dispute.id, 'warning_closed');
    return text === 'escalate_inquiry_evidence' ? escalateDispute(context, dispute.id) : dispute;
  }
  if (text === 'winning_evidence') return closeDispute(context, dispute.id, 'won');
  return text === 'losing_evidence' ? closeDispute(context, dispute.id, 'lost') : dispute;
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
