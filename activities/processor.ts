/**
 * The steps that talk to the payment processor. Each may run twice, and beside a slow earlier attempt
 * of itself: the processor's idempotency keys, and ids that are stored before money moves, see to it.
 */
import { ApplicationFailure } from '@temporalio/activity';
import type { Stripe } from 'stripe';
import { wireId } from '../src/domain/ids.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import type { Database } from '../src/store/database.ts';
import {
  findProcessorCustomer,
  recordProcessorCustomer,
} from '../src/store/top-ups/processor-customers.ts';
import {
  getTopUp,
  planSession,
  recordPaymentIntent,
  recordSession,
  type TopUp,
} from '../src/store/top-ups/top-ups.ts';
import { ask, seen } from '../src/stripe/ask-processor.ts';
import * as calls from '../src/stripe/calls.ts';
import { recall } from '../src/stripe/recall.ts';
import { failureOf, isUnconfirmed, verdictOfIntent } from '../src/stripe/verdict.ts';
import { rowIdOf } from './row-id.ts';

export interface ProcessorDeps {
  readonly database: Database;
  readonly stripe: Stripe;
  readonly baseUrl: string;
  /** How long a checkout can be paid. */
  readonly checkoutMinutes: number;
  /** Whether a direct top-up without a saved card saves the processor's test card first. */
  readonly savesTestCard: boolean;
}

/** Where the consumer pays, and the session's id; null when the top-up has ended without one. */
export type OpenedCheckout = Pick<TopUp, 'sessionUrl' | 'sessionId'>;

export type ProcessorActivities = ReturnType<typeof createProcessorActivities>;

export function createProcessorActivities(deps: ProcessorDeps) {
  const step = <T>(run: (topUp: TopUp) => Promise<T>) => {
    return async (topUpId: string): Promise<T> => {
      return run(await getTopUp(deps.database, rowIdOf('topUp', topUpId)));
    };
  };
  return {
    openCheckout: step((topUp) => openCheckout(deps, topUp)),
    /** Takes the amount from the saved card, unless that was done or has failed before. */
    chargeSavedCard: step((topUp) => chargeSavedCard(deps, topUp)),
    askProcessor: step((topUp) => ask(deps, topUp)),
    /** Makes sure that nobody can pay any more, if nobody has. */
    cancelPayment: step((topUp) => cancelPayment(deps, topUp)),
  };
}

async function openCheckout(deps: ProcessorDeps, asked: TopUp): Promise<OpenedCheckout> {
  if (asked.sessionUrl !== null) return checkoutOf(asked);
  demand(asked, 'checkout');
  if (asked.status !== 'pending') return checkoutOf(asked);
  const topUp = await recall(deps, asked);
  // Paid or over, without a page any more: the next step reads which.
  if (topUp.sessionId !== null || topUp.paymentIntentId !== null) return checkoutOf(topUp);
  const customerId = await customerOf(deps, topUp);
  const planned = await planSession(deps.database, topUp.id, deps.checkoutMinutes);
  const session = await calls.createSession(deps.stripe, planned, customerId, deps.baseUrl);
  return checkoutOf(await recordSession(deps.database, topUp.id, session));
}

function checkoutOf({ sessionUrl, sessionId }: TopUp): OpenedCheckout {
  return { sessionUrl, sessionId };
}

/**
 * Who asked for a direct top-up that could not be tried for so long has paid in another way or given up. An automatic one
 * is wanted as long as the balance is low.
 */
const DIRECT_TRIED_WITHIN_MS = 15 * 60_000;

async function chargeSavedCard(deps: ProcessorDeps, asked: TopUp): Promise<Verdict> {
  const { stripe, database } = deps;
  demand(asked, 'direct');
  if (asked.status !== 'pending') return ask(deps, asked);
  const topUp = await recall(deps, asked);
  let earlier = topUp.paymentIntentId && (await calls.readIntent(stripe, topUp.paymentIntentId));
  const isLate =
    !topUp.automatic && Date.parse(topUp.createdAt) + DIRECT_TRIED_WITHIN_MS < Date.now();
  if (earlier && isUnconfirmed(earlier) && isLate) {
    // An attempt beside this one may be confirming it: what the processor then says counts.
    await calls.cancelIntent(stripe, earlier.id);
    earlier = await calls.readIntent(stripe, earlier.id);
  }
  if (earlier && !isUnconfirmed(earlier) && !(isLate && earlier.status === 'canceled')) {
    return seen(deps, topUp, verdictOfIntent(earlier, topUp));
  }
  if (isLate) return seen(deps, topUp, { kind: 'failed', failure: failureOf('payment_too_late') });

  const customerId = await customerOf(deps, topUp);
  const cardId =
    (await calls.findSavedCard(stripe, customerId)) ??
    (deps.savesTestCard
      ? await calls.saveTestCard(stripe, topUp.accountId, customerId)
      : undefined);
  if (cardId === undefined) {
    return seen(deps, topUp, { kind: 'failed', failure: failureOf('no_saved_card') });
  }

  const intent = earlier || (await calls.createIntent(stripe, topUp, customerId));
  const stored = await recordPaymentIntent(database, topUp.id, intent.id);
  // Only the stored intent may take money, and none once the top-up has ended (an operator's cancel).
  if (stored.status !== 'pending' || stored.paymentIntentId !== intent.id) return ask(deps, stored);
  const confirmed = await calls.confirmIntent(stripe, intent.id, cardId);
  return seen(deps, topUp, verdictOfIntent(confirmed, topUp));
}

async function cancelPayment(deps: ProcessorDeps, asked: TopUp): Promise<Verdict> {
  const topUp = await recall(deps, asked);
  if (topUp.sessionId !== null) await calls.expireSession(deps.stripe, topUp.sessionId);
  else if (topUp.paymentIntentId !== null) {
    await calls.cancelIntent(deps.stripe, topUp.paymentIntentId);
  } else return seen(deps, topUp, { kind: 'expired' });
  return ask(deps, topUp);
}

/**
 * What is paid in another way, or was never taken up and may be withdrawn, takes no money here: somebody started this
 * step by hand.
 */
function demand({ id, method, isOpened }: TopUp, wanted: TopUp['method']): void {
  if (method === wanted && isOpened) return;
  throw ApplicationFailure.nonRetryable(
    `${wireId('topUp', id)} is not a ${wanted} top-up that was taken up: nothing was done.`,
    'not_open',
  );
}

async function customerOf(deps: ProcessorDeps, topUp: TopUp): Promise<string> {
  const known = await findProcessorCustomer(deps.database, topUp.accountId);
  if (known !== null) return known;
  const created = await calls.createCustomer(deps.stripe, topUp.accountId);
  return recordProcessorCustomer(deps.database, topUp.accountId, created);
}
