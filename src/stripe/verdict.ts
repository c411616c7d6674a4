/**
 * Derives the state of a top-up from the payment processor's objects. Pure. Only a payment in full, in the
 * right currency and for this top-up counts as paid; anything else that looks paid is an error.
 */
import type { Stripe } from 'stripe';
import { wireId } from '../domain/ids.ts';
import { asMicros, formatDollars, microsOfCents, type Micros } from '../domain/money.ts';
import type { DisputeStatus } from '../domain/reversal.ts';
import type { CardFailureCode, TopUpFailure, TopUpMethod } from '../domain/top-up.ts';
import type { Verdict } from '../domain/verdict.ts';

/** The values of the row that a payment must match. */
export interface Expected {
  readonly id: string;
  /** The credit, without tax. */
  readonly amountMicros: Micros;
  /** Whether the payer pays tax on top of it. */
  readonly isTaxed: boolean | null;
  /** The tax, once it is known: before a direct top-up is paid, and after a checkout is. */
  readonly taxMicros: Micros;
}

/** What the functions here read of a payment intent. Its charge must be expanded. */
export interface IntentFields extends Pick<
  Stripe.PaymentIntent,
  'id' | 'status' | 'currency' | 'amount_received' | 'metadata' | 'last_payment_error'
> {
  readonly latest_charge: string | Pick<Stripe.Charge, 'amount_refunded' | 'disputed'> | null;
}

type Failed = Extract<Verdict, { kind: 'failed' }>;

/** The processor shows a different payment than the one we requested. A person has to decide. */
export class PaymentMismatchError extends Error {
  override readonly name = 'PaymentMismatchError';
}

/** Owners read it in the console as well, where no request has a name. */
const CHECKOUT = 'Top up through the hosted checkout instead';

/** Why a top-up from the saved card failed. Each message tells the consumer what to do instead. */
export const FAILURES = {
  card_declined: `The payment was declined. ${CHECKOUT}, where another card can be used.`,
  card_expired: `The saved card has expired. ${CHECKOUT}, which offers to save the new card.`,
  // Stored by releases that ended such a top-up.
  authentication_required: `The bank requires the cardholder to confirm this payment. ${CHECKOUT}, where that is possible.`,
  invalid_amount: `With its tax, the payment would be more than $999,999.99, the most that a card can be charged. Top up a smaller amount.`,
  tax_address_missing: `The address that the tax depends on is missing. ${CHECKOUT}, which asks for it.`,
  declined_too_often: `The saved card was declined too often within an hour, so it was not charged. ${CHECKOUT}, where another card can be used.`,
  consent_required: `The owner of the account has withdrawn the consent to payments from the saved card, so it was not charged. ${CHECKOUT}.`,
  consent_ceiling_reached: `The owner of the account has lowered the monthly limit of payments from the saved card, so it was not charged. ${CHECKOUT}.`,
  no_saved_card: `No card is saved. ${CHECKOUT}, which offers to save the card.`,
  payment_too_late: `The payment could not be attempted within 15 minutes, so nothing was charged. Repeat it with a new Idempotency-Key.`,
  payment_failed: `The bank did not complete the payment. ${CHECKOUT}.`,
} as const satisfies Readonly<Record<CardFailureCode, string>>;

export const FAILURE_CODES = Object.keys(FAILURES) as CardFailureCode[];

export function failureOf(code: CardFailureCode): TopUpFailure {
  return { code, message: FAILURES[code] };
}

/** The verdict on a payment from a card that its bank will never accept again. */
export function refusedFor(cardId: string): Failed {
  const message = `The bank does not accept this card any more, so it is not tried again. ${CHECKOUT}, where another card can be used.`;
  return { kind: 'failed', failure: { code: 'card_declined', message }, refusedCardId: cardId };
}

/** Nobody who paid at the checkout is sent there. */
function atCheckout(failed: Failed): Failed {
  const message =
    'The bank did not complete the payment. Top up again with another account or card.';
  return { ...failed, failure: { code: failed.failure.code, message } };
}

/** The failure that a row recorded. */
export function storedFailureOf({
  method,
  seenFailureCode: code,
  refusedCardId,
}: {
  readonly method: TopUpMethod;
  readonly seenFailureCode: string | null;
  readonly refusedCardId: string | null;
}): Failed {
  const failed = refusedCardId === null ? failedFor(code) : refusedFor(refusedCardId);
  return method === 'checkout' ? atCheckout(failed) : failed;
}

function failedFor(code: string | null): Failed {
  if (code !== null && Object.hasOwn(FAILURES, code))
    return { kind: 'failed', failure: failureOf(code as CardFailureCode) };
  throw new Error(`${code} is not a failure code of top-ups`);
}

/** The session must have its payment intent expanded, and the intent its charge. */
export function verdictOfSession(session: Stripe.Checkout.Session, expected: Expected): Verdict {
  if (session.payment_status !== 'unpaid') {
    return unlessReturned(session.payment_intent, () => paidSession(session, expected));
  }
  if (session.status === 'expired') return { kind: 'expired' };
  const intent = session.payment_intent;
  if (session.status !== 'complete') return { kind: 'open' };
  // A delayed payment method (a bank debit) completes the session first, may wait for the payer to verify the
  // account, and may fail days later.
  const isWaiting =
    intent === null || typeof intent === 'string' || intent.status === 'requires_action';
  const verdict: Verdict = isWaiting ? { kind: 'open' } : verdictOfIntent(intent, expected);
  if (verdict.kind === 'failed') return atCheckout(verdict);
  return verdict.kind === 'open' ? { ...verdict, isUnderWay: true } : verdict;
}

function paidSession(session: Stripe.Checkout.Session, expected: Expected): Verdict {
  demand(session.payment_status, 'paid', `payment status of ${session.id}`);
  demand(session.currency, 'usd', `currency of ${session.id}`);
  const taxCents = taxCentsOf(session, expected);
  const net = (session.amount_total ?? 0) - taxCents;
  demandAmount(net, expected.amountMicros, session.id);
  demand(session.metadata?.['top_up_id'], wireId('topUp', expected.id), `owner of ${session.id}`);
  const { payment_intent: paid } = session;
  const paymentIntentId = idOf(paid);
  if (paymentIntentId === undefined) {
    throw new PaymentMismatchError(`${session.id} is paid but has no payment`);
  }
  return {
    kind: 'paid',
    paymentIntentId,
    paidMicros: microsOfCents(session.amount_total ?? 0),
    taxMicros: microsOfCents(taxCents),
    ...(session.invoice && { invoiceId: idOf(session.invoice) }),
    hasReversals: typeof paid === 'object' && paid !== null && wasReversed(paid),
  };
}

/** In cents. A session that was opened without tax has none. */
export function taxCentsOf(
  { total_details }: Stripe.Checkout.Session,
  { isTaxed }: Pick<Expected, 'isTaxed'>,
): number {
  return isTaxed ? (total_details?.amount_tax ?? 0) : 0;
}

export function verdictOfIntent(intent: IntentFields, expected: Expected): Verdict {
  switch (intent.status) {
    case 'succeeded':
      return unlessReturned(intent, () => paidIntent(intent, expected));
    case 'canceled':
      return { kind: 'expired' };
    case 'requires_action':
      return { kind: 'open', needsPayer: true };
    case 'requires_payment_method':
      if (needsPayer(intent)) return { kind: 'open', needsPayer: true };
      return intent.last_payment_error === null
        ? { kind: 'open' }
        : verdictOfDecline(intent.last_payment_error);
    case 'processing':
    case 'requires_confirmation':
    case 'requires_capture':
    default:
      return { kind: 'open' };
  }
}

function paidIntent(intent: IntentFields, expected: Expected): Verdict {
  demand(intent.currency, 'usd', `currency of ${intent.id}`);
  demandAmount(
    intent.amount_received,
    asMicros(expected.amountMicros + expected.taxMicros),
    intent.id,
  );
  demand(intent.metadata['top_up_id'], wireId('topUp', expected.id), `owner of ${intent.id}`);
  return {
    kind: 'paid',
    paymentIntentId: intent.id,
    paidMicros: microsOfCents(intent.amount_received),
    taxMicros: expected.taxMicros,
    hasReversals: wasReversed(intent),
  };
}

/**
 * A different payment needs a person until all of it is refunded. Then the top-up was not paid, and no longer
 * can be.
 */
function unlessReturned(intent: IntentFields | string | null, verdict: () => Verdict): Verdict {
  try {
    return verdict();
  } catch (error) {
    if (!(error instanceof PaymentMismatchError)) throw error;
    if (typeof intent !== 'object' || intent === null || keptCentsOf(intent) > 0) throw error;
    return { kind: 'expired' };
  }
}

/** A dispute that takes or holds money of a payment. */
export interface PaymentDispute {
  readonly status: Exclude<DisputeStatus, 'won'>;
  /** In cents of the payment's currency. */
  readonly cents: number;
}

/** By payment intent. */
export type Disputes = ReadonlyMap<string, readonly PaymentDispute[]>;

/** The part of a payment that was not refunded. */
export function keptCentsOf({ amount_received, latest_charge: charge }: IntentFields): number {
  return amount_received - (typeof charge === 'object' ? (charge?.amount_refunded ?? 0) : 0);
}

const AUTHENTICATION_CODES: ReadonlySet<string | undefined> = new Set([
  'authentication_required',
  'payment_intent_authentication_failure',
]);

/** Whether a card payment waits until the cardholder confirms it at the bank. The payer may try more than once. */
export function needsPayer({ status, last_payment_error }: IntentFields): boolean {
  if (status === 'requires_action') return true;
  return status === 'requires_payment_method' && AUTHENTICATION_CODES.has(last_payment_error?.code);
}

/** Whether the intent still has to be confirmed: no payment was ever attempted with it. */
export function isUnconfirmed(intent: Stripe.PaymentIntent): boolean {
  return (
    intent.status === 'requires_confirmation' ||
    (intent.status === 'requires_payment_method' && intent.last_payment_error === null)
  );
}

/** The bank's reasons after which no later attempt with the card can succeed. */
const FINAL_DECLINES: ReadonlySet<string | undefined> = new Set([
  'lost_card',
  'stolen_card',
  'pickup_card',
  'stop_payment_order',
  'revocation_of_authorization',
  'revocation_of_all_authorizations',
]);

function verdictOfDecline(error: Stripe.PaymentIntent.LastPaymentError): Verdict {
  const { advice_code: advice, decline_code: reason, payment_method: method } = error;
  const isFinal = advice === 'do_not_try_again' || FINAL_DECLINES.has(reason);
  if (isFinal && method?.type === 'card') return refusedFor(method.id);
  return { kind: 'failed', failure: failureOf(codeOf(error)) };
}

function codeOf(error: Stripe.PaymentIntent.LastPaymentError): CardFailureCode {
  if (error.payment_method && error.payment_method.type !== 'card') return 'payment_failed';
  return error.code === 'expired_card' ? 'card_expired' : 'card_declined';
}

function wasReversed({ latest_charge: charge }: IntentFields): boolean {
  if (charge === null || typeof charge === 'string') return false;
  return charge.disputed || charge.amount_refunded > 0;
}

/** The id of a field that Stripe returns as an id, or as an object if expanded. */
export function idOf(
  object: string | { readonly id: string } | null | undefined,
): string | undefined {
  return typeof object === 'string' ? object : object?.id;
}

function demand(actual: unknown, wanted: unknown, what: string): void {
  if (actual === wanted) return;
  throw new PaymentMismatchError(`${what}: ${String(wanted)} expected, ${String(actual)} found`);
}

/** In dollars: an operator reads it. */
function demandAmount(cents: number, wanted: Micros, id: string): void {
  const actual = microsOfCents(cents);
  if (actual !== wanted) demand(formatDollars(actual), formatDollars(wanted), `amount of ${id}`);
}
