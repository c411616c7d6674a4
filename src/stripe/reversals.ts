/**
 * Reads refunds and disputes at Stripe, and makes refunds. A refund has one idempotency key forever, made
 * from its row's id: if a response was lost, its outcome is found by reading, never with a new key.
 */
import type { Stripe } from 'stripe';
import { uuidOf, wireId } from '../domain/ids.ts';
import { centsOf, microsOfCents, type Micros } from '../domain/money.ts';
import type { DisputeStatus } from '../domain/reversal.ts';
import type { ReportedReversal } from '../store/top-ups/reversals.ts';
import { isRefusal } from './errors.ts';
import {
  PaymentMismatchError,
  type Disputes,
  type IntentFields,
  type PaymentDispute,
} from './verdict.ts';

export type MadeRefund =
  | { readonly kind: 'made'; readonly reported: ReportedReversal }
  /** Certainly not made. */
  | { readonly kind: 'refused'; readonly message: string };

/** The current state of all refunds, disputes and fraud warnings of a payment. */
export async function readReversals(
  stripe: Stripe,
  paymentIntentId: string,
): Promise<ReportedReversal[]> {
  const which = { payment_intent: paymentIntentId, limit: 100 };
  const reported: ReportedReversal[] = [];
  for await (const refund of stripe.refunds.list(which)) reported.push(reportOfRefund(refund));
  const withCharges = { ...which, expand: ['data.charge'] };
  for await (const dispute of stripe.disputes.list(withCharges))
    reported.push(reportOfDispute(dispute));
  for await (const warning of stripe.radar.earlyFraudWarnings.list(withCharges))
    reported.push(...reportOfWarning(warning));
  return reported;
}

/** Call it only if `readReversals` has just not shown the refund, because Stripe forgets keys after a day. */
export async function makeRefund(
  stripe: Stripe,
  paymentIntentId: string,
  refund: { readonly id: string; readonly grossMicros: Micros },
): Promise<MadeRefund> {
  const id = wireId('topUpRefund', refund.id);
  const amount = centsOf(refund.grossMicros);
  try {
    const made = await stripe.refunds.create(
      { payment_intent: paymentIntentId, amount, metadata: { refund_id: id } },
      { idempotencyKey: id },
    );
    return { kind: 'made', reported: reportOfRefund(made) };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return { kind: 'refused', message: error.message };
  }
}

export function reportOfRefund(refund: Stripe.Refund): ReportedReversal {
  return {
    kind: 'refund',
    processorId: refund.id,
    grossMicros: microsOf(refund),
    // A pending refund counts as made: the money has left, and returns if the refund fails.
    status: refund.status === 'failed' || refund.status === 'canceled' ? 'failed' : 'made',
    refundId: uuidOf('topUpRefund', refund.metadata?.['refund_id'] ?? ''),
    failureMessage: refund.failure_reason?.replaceAll('_', ' '),
  };
}

/** Its charge must be expanded. */
export function reportOfDispute(dispute: Stripe.Dispute): ReportedReversal {
  return {
    kind: 'dispute',
    processorId: dispute.id,
    grossMicros: disputedMicros(dispute),
    status: statusOf(dispute),
  };
}

/**
 * A warning concerns what is left of the payment, until that is refunded in full, or disputed. Stripe then
 * says that it is not actionable, and need not take that back when the refund fails, so the charge counts
 * too. The charge must be expanded. Empty: nothing was left when the warning came.
 */
export function reportOfWarning(warning: Stripe.Radar.EarlyFraudWarning): ReportedReversal[] {
  const { id } = warning;
  const charge = expandedChargeOf(warning);
  const isOpen = warning.actionable || !(charge.refunded || charge.disputed);
  const grossMicros = microsOf({
    id,
    amount: isOpen ? charge.amount - charge.amount_refunded : charge.amount,
    currency: charge.currency,
  });
  if (grossMicros === 0) return [];
  return [{ kind: 'warning', processorId: id, grossMicros, status: isOpen ? 'open' : 'won' }];
}

/** The disputes that take or hold money of these payments. */
export async function readDisputes(
  stripe: Stripe,
  payments: readonly IntentFields[],
): Promise<Disputes> {
  const disputes = new Map<string, PaymentDispute[]>();
  for (const { id, latest_charge: charge } of payments) {
    if (typeof charge !== 'object' || charge?.disputed !== true) continue;
    const found: PaymentDispute[] = [];
    const which = { payment_intent: id, limit: 100, expand: ['data.charge'] };
    for await (const dispute of stripe.disputes.list(which))
      found.push(...paymentDisputeOf(dispute));
    disputes.set(id, found);
  }
  return disputes;
}

/**
 * Its charge must be expanded. A dispute in another currency than its payment's counts as one of all of the payment.
 * Empty: it takes nothing.
 */
export function paymentDisputeOf(dispute: Stripe.Dispute): PaymentDispute[] {
  const status = statusOf(dispute);
  if (status === 'won') return [];
  const charge = expandedChargeOf(dispute);
  const cents = dispute.currency === charge.currency ? dispute.amount : charge.amount;
  return [{ status, cents }];
}

/** An inquiry (`warning_…`) moves no money, so it counts as won. */
function statusOf({ status, balance_transactions: moved }: Stripe.Dispute): DisputeStatus {
  switch (status) {
    case 'needs_response':
    case 'under_review':
    case 'appeal_needs_response':
    case 'appeal_under_review':
      return 'open';
    case 'lost':
      return 'lost';
    case 'won':
    case 'warning_needs_response':
    case 'warning_under_review':
    case 'warning_closed':
      return 'won';
    // Any future status: the amounts moved decide.
    case 'prevented':
    default:
      return moved.reduce((sum, { amount }) => sum + amount, 0) < 0 ? 'lost' : 'won';
  }
}

/**
 * The bank may dispute a payment in its own currency. Then what left our balance at Stripe counts, and all of
 * the payment while that shows no dollars: an inquiry takes nothing, and the account at Stripe may have
 * another currency.
 */
function disputedMicros(dispute: Stripe.Dispute): Micros {
  if (dispute.currency === 'usd') return microsOf(dispute);
  const takenCents = dispute.balance_transactions
    .filter(({ amount, currency }) => amount < 0 && currency === 'usd')
    .reduce((sum, { amount }) => sum - amount, 0);
  return takenCents > 0 ? microsOfCents(takenCents) : microsOf(expandedChargeOf(dispute));
}

export function expandedChargeOf({ id, charge }: Expandable): Stripe.Charge {
  if (typeof charge === 'string') throw new Error(`the charge of ${id} is not expanded`);
  return charge;
}

type Expandable = Pick<Stripe.Dispute, 'id' | 'charge'>;

function microsOf({
  id,
  amount,
  currency,
}: Pick<Stripe.Refund, 'id' | 'amount' | 'currency'>): Micros {
  if (currency === 'usd') return microsOfCents(amount);
  throw new PaymentMismatchError(`currency of ${id}: usd expected, ${currency} found`);
}
