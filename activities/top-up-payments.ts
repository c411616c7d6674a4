/**
 * The steps of a top-up that call the payment processor. Each may run twice, even beside a slow earlier attempt: the
 * processor's idempotency keys, and ids stored before money moves, make that safe.
 */
import { ApplicationFailure } from '@temporalio/activity';
import type { Stripe } from 'stripe';
import { wireId } from '../src/domain/ids.ts';
import { TOP_UP_MICROS_MAX } from '../src/domain/top-up.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import type { Database } from '../src/store/database.ts';
import { findAutoTopUpFor } from '../src/store/top-ups/auto-top-ups.ts';
import { readConsent, type Consent } from '../src/store/top-ups/monthly-ceiling.ts';
import { isCardRefused } from '../src/store/top-ups/payment-evidence.ts';
import { findChosenCard } from '../src/store/top-ups/processor-customers.ts';
import { findDeclinedWait } from '../src/store/top-ups/declines.ts';
import {
  planSession,
  planTax,
  recordPaymentIntent,
  recordSession,
  recordTaxCalculation,
} from '../src/store/top-ups/plan-payment.ts';
import { getTopUp, type TopUp } from '../src/store/top-ups/top-ups.ts';
import { ask, recordedUnpaid, recordVerdict, type AskDeps } from '../src/stripe/ask-processor.ts';
import * as calls from '../src/stripe/calls.ts';
import { cardToCharge, listCards } from '../src/stripe/cards.ts';
import { withCustomer } from '../src/stripe/customer.ts';
import { isMissing } from '../src/stripe/errors.ts';
import { isTooLateToOpen, recall } from '../src/stripe/recall.ts';
import { calculateTax, type TaxSettings } from '../src/stripe/tax.ts';
import {
  failureOf,
  idOf,
  isUnconfirmed,
  PaymentMismatchError,
  refusedFor,
  verdictOfIntent,
} from '../src/stripe/verdict.ts';
import { rowIdOf } from './row-id.ts';

export interface TopUpPaymentDeps extends AskDeps {
  readonly consoleUrl: string;
  /** How long a checkout stays open. */
  readonly checkoutMinutes: number;
  /** Whether a direct top-up without a saved card saves the processor's test card first. */
  readonly savesTestCard: boolean;
  /** Undefined: new top-ups are not taxed. */
  readonly tax: TaxSettings | undefined;
}

/** The session's URL, where the consumer pays, and its id; null if the top-up ended without a session. */
export type OpenedCheckout = Pick<TopUp, 'sessionUrl' | 'sessionId'>;

export type TopUpPaymentActivities = ReturnType<typeof createTopUpPaymentActivities>;

export function createTopUpPaymentActivities(deps: TopUpPaymentDeps) {
  const step = <T>(run: (topUp: TopUp) => Promise<T>) => {
    return async (topUpId: string): Promise<T> => {
      return run(await getTopUp(deps.database, rowIdOf('topUp', topUpId)));
    };
  };
  return {
    openCheckout: step((topUp) => openCheckout(deps, topUp)),
    /** Charges the saved card, unless an earlier attempt did or failed. */
    chargeSavedCard: step((topUp) => chargeSavedCard(deps, topUp)),
    askProcessor: step((topUp) => ask(deps, topUp)),
    /** For an operator: closes the payment, unless it was already paid. */
    cancelPayment: step((topUp) => cancelByOperator(deps, topUp)),
  };
}

async function openCheckout(deps: TopUpPaymentDeps, asked: TopUp): Promise<OpenedCheckout> {
  if (asked.sessionUrl !== null) return checkoutOf(asked);
  demand(asked, 'checkout');
  // It has ended, or an operator has canceled it and its workflow has yet to record the end.
  if (asked.status !== 'pending' || asked.seenVerdict !== null) return checkoutOf(asked);
  const topUp = await recall(deps, asked);
  // A session that is paid or expired has no URL, and none is opened too late. The next step reads which it is.
  if (topUp.sessionId !== null || topUp.paymentIntentId !== null) return checkoutOf(topUp);
  if (isTooLateToOpen(topUp)) return checkoutOf(topUp);
  await planTax(deps.database, topUp.id, deps.tax !== undefined);
  const planned = await planSession(deps.database, topUp.id, deps.checkoutMinutes);
  const open = (customerId: string | null) =>
    calls.createSession(deps.stripe, planned, customerId, deps.consoleUrl, deps.tax?.code);
  const session = await (planned.byLink ? open(null) : withCustomer(deps, topUp.accountId, open));
  return checkoutOf(await recordSession(deps.database, topUp.id, session));
}

function checkoutOf({ sessionUrl, sessionId }: TopUp): OpenedCheckout {
  return { sessionUrl, sessionId };
}

/**
 * A consumer whose direct top-up could not be tried for this long has paid another way or given up. An automatic top-up
 * is needed as long as the balance is low.
 */
const DIRECT_TRIED_WITHIN_MS = 15 * 60_000;

async function chargeSavedCard(deps: TopUpPaymentDeps, asked: TopUp): Promise<Verdict> {
  demand(asked, 'direct');
  if (asked.status !== 'pending') return ask(deps, asked);
  const topUp = await recall(deps, asked);
  const recorded = recordedUnpaid(topUp);
  if (recorded) return recordVerdict(deps, topUp, recorded);
  const isLate = !topUp.automatic && topUp.ageMs > DIRECT_TRIED_WITHIN_MS;
  const earlier = await earlierIntentOf(deps, topUp, isLate);
  if (earlier && !isUnconfirmed(earlier) && !(isLate && earlier.status === 'canceled')) {
    return recordVerdict(deps, topUp, verdictOfIntent(earlier, topUp));
  }
  // A decline that was recorded meanwhile stays: it is why the intent is canceled.
  if (isLate) return recordVerdict(deps, topUp, failedFor('payment_too_late'));
  return payBySavedCard(deps, topUp, earlier);
}

/**
 * The current state of the intent that an earlier attempt made. If it is late and was never confirmed, it is
 * canceled first.
 */
async function earlierIntentOf(
  { stripe }: TopUpPaymentDeps,
  { paymentIntentId }: TopUp,
  isLate: boolean,
): Promise<Stripe.PaymentIntent | undefined> {
  if (paymentIntentId === null) return undefined;
  const intent = await calls.readIntent(stripe, paymentIntentId);
  if (!isLate || !isUnconfirmed(intent)) return intent;
  // A concurrent attempt may be confirming the intent, so read the processor's final state.
  await calls.cancelIntent(stripe, paymentIntentId);
  return calls.readIntent(stripe, paymentIntentId);
}

/** Confirms the intent of an earlier attempt, or makes one, unless something forbids the payment. */
async function payBySavedCard(
  deps: TopUpPaymentDeps,
  topUp: TopUp,
  earlier: Stripe.PaymentIntent | undefined,
): Promise<Verdict> {
  const { stripe, database } = deps;
  // The top-up may have been accepted long before its card can be charged.
  const consent = await readConsent(database, topUp.consumerId);
  if (consent.ceilingMicros === null) {
    return recordVerdict(deps, topUp, failedFor('consent_required'));
  }
  if (consent.takenMicros > consent.ceilingMicros) {
    return recordVerdict(deps, topUp, failedFor('consent_ceiling_reached'));
  }
  if (topUp.automatic && (await isUnwanted(database, topUp, consent))) {
    return cancelPayment(deps, topUp);
  }
  const { customerId, cardId } = await withCustomer(deps, topUp.accountId, (customerId) =>
    cardOf(deps, topUp, customerId),
  );
  // The customer was deleted since, with its saved cards. A card of its successor cannot pay the intent.
  const isOrphaned = earlier !== undefined && idOf(earlier.customer) !== customerId;
  if (isOrphaned && topUp.automatic) return cancelPayment(deps, topUp);
  if (isOrphaned || cardId === undefined) {
    return recordVerdict(deps, topUp, failedFor('no_saved_card'));
  }
  if (await isCardRefused(database, topUp.consumerId, cardId)) {
    return recordVerdict(deps, topUp, refusedFor(cardId));
  }
  // Several may have been admitted before the first was declined. Automatic ones have a limit of their own.
  if (!topUp.automatic && (await findDeclinedWait(database, topUp.consumerId)) > 0) {
    return recordVerdict(deps, topUp, failedFor('declined_too_often'));
  }

  const taxed = earlier ? topUp : await withTax(deps, topUp, customerId);
  if (!taxed) {
    return recordVerdict(deps, topUp, failedFor('tax_address_missing'));
  }
  // Stripe would refuse it each time. Requests leave room for the tax; settings of automatic top-ups may be
  // older than it.
  if (taxed.amountMicros + taxed.taxMicros > TOP_UP_MICROS_MAX) {
    return recordVerdict(deps, topUp, failedFor('invalid_amount'));
  }
  const intent = earlier ?? (await calls.createIntent(stripe, taxed, customerId));
  const stored = await recordPaymentIntent(database, topUp.id, intent.id);
  // Only the stored intent may take money, and none may once the top-up has a verdict (by an operator's cancel).
  const mayPay = stored.status === 'pending' && stored.seenVerdict === null;
  if (!mayPay || stored.paymentIntentId !== intent.id) return ask(deps, stored);
  const confirmed = await calls.confirmIntent(stripe, intent.id, cardId);
  return recordVerdict(deps, stored, verdictOfIntent(confirmed, stored));
}

/**
 * Since this automatic top-up was due, the owner, a dispute or a fraud warning has turned them off, the owner has
 * lowered their amount or their ceiling, or something was credited and the balance is no longer low.
 */
async function isUnwanted(
  database: Database,
  topUp: TopUp,
  { takenAutomaticallyMicros }: Consent,
): Promise<boolean> {
  const wanted = await findAutoTopUpFor(database, topUp);
  if (wanted === null || wanted.status === 'off' || !wanted.isNeeded) return true;
  return (
    topUp.amountMicros > wanted.amountMicros || takenAutomaticallyMicros > wanted.ceilingMicros
  );
}

function failedFor(code: Parameters<typeof failureOf>[0]): Verdict {
  return { kind: 'failed', failure: failureOf(code) };
}

/** The top-up with its tax, which is fixed before its payment intent is made. Undefined: there is no address to tax. */
async function withTax(
  { stripe, database, tax }: TopUpPaymentDeps,
  topUp: TopUp,
  customerId: string,
): Promise<TopUp | undefined> {
  const planned = await planTax(database, topUp.id, tax !== undefined);
  if (!planned.isTaxed || planned.taxCalculationId !== null) return planned;
  const config = tax ?? { code: undefined };
  const calculation = await calculateTax(stripe, customerId, topUp.amountMicros, config);
  return calculation && recordTaxCalculation(database, topUp.id, calculation);
}

/** Ends the top-up even if a different payment was made than the one requested. Reconciliation lists it while it is kept. */
async function cancelByOperator(deps: TopUpPaymentDeps, asked: TopUp): Promise<Verdict> {
  try {
    return await cancelPayment(deps, asked);
  } catch (error) {
    if (!(error instanceof PaymentMismatchError)) throw error;
    return recordVerdict(deps, await getTopUp(deps.database, asked.id), { kind: 'expired' });
  }
}

async function cancelPayment(deps: TopUpPaymentDeps, asked: TopUp): Promise<Verdict> {
  const topUp = await recall(deps, asked);
  if (topUp.sessionId !== null) await calls.expireSession(deps.stripe, topUp.sessionId);
  else if (topUp.paymentIntentId !== null) {
    await calls.cancelIntent(deps.stripe, topUp.paymentIntentId);
  } else return recordVerdict(deps, topUp, { kind: 'expired' });
  try {
    return await ask(deps, topUp);
  } catch (error) {
    // Nobody can pay what the processor does not know, and an operator asked for the end.
    if (isMissing(error)) return recordVerdict(deps, topUp, { kind: 'expired' });
    throw error;
  }
}

/**
 * Refuses to take money for a top-up with another payment method, or one that no workflow has claimed and the request
 * may still withdraw. That happens only if somebody starts this step manually.
 */
function demand({ id, method, isClaimed }: TopUp, wanted: TopUp['method']): void {
  if (method === wanted && isClaimed) return;
  throw ApplicationFailure.nonRetryable(
    `${wireId('topUp', id)} is not a ${wanted} top-up claimed by its workflow. Nothing was done.`,
    'not_open',
  );
}

/** The saved card to charge, or the test card where that is allowed, or undefined. */
async function cardOf(
  { stripe, database, savesTestCard }: TopUpPaymentDeps,
  topUp: TopUp,
  customerId: string,
) {
  const chosen = await findChosenCard(database, topUp.accountId);
  const saved = cardToCharge(await listCards(stripe, customerId), chosen)?.id;
  const isToSave = saved === undefined && savesTestCard;
  const cardId = isToSave ? await calls.saveTestCard(stripe, topUp.accountId, customerId) : saved;
  return { customerId, cardId };
}
