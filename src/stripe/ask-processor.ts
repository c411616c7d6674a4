/**
 * Reads the state of a top-up at the payment processor, and records a final state in its row as evidence. The
 * steps that credit, fail or expire a top-up trust that evidence, and never their caller.
 */
import type { Stripe } from 'stripe';
import { CHECKOUT_MINUTES_MAX } from '../domain/checkout.ts';
import type { Verdict } from '../domain/verdict.ts';
import type { Database } from '../store/database.ts';
import { recordAuthenticationAsked } from '../store/top-ups/authentication.ts';
import {
  recordPaid,
  recordUnderWay,
  recordUnpaid,
  type Kept,
  type SeenUnpaid,
} from '../store/top-ups/payment-evidence.ts';
import { getTopUp, type TopUp } from '../store/top-ups/top-ups.ts';
import { cancelIntent, expireSession, readIntent, readSession } from './calls.ts';
import { isTooLateToOpen, recall } from './recall.ts';
import {
  PaymentMismatchError,
  storedFailureOf,
  verdictOfIntent,
  verdictOfSession,
} from './verdict.ts';

export interface AskDeps {
  readonly database: Database;
  readonly stripe: Stripe;
  /** Called whenever an automatic top-up waits for its owner, who was not told yet. */
  readonly tellOwner?: (topUp: TopUp) => void;
}

/** How long a payment that the bank wants confirmed waits for the cardholder: as long as a checkout. */
const AUTHENTICATED_WITHIN_MS = CHECKOUT_MINUTES_MAX * 60_000;

export async function ask(deps: AskDeps, asked: TopUp): Promise<Verdict> {
  const topUp = await recall(deps, asked);
  const verdict = await recordVerdict(deps, topUp, await readVerdictOf(deps, topUp));
  if (verdict.kind !== 'paid' || topUp.paymentIntentId !== null) return verdict;
  // Reports of refunds and disputes name only the payment intent, which our row did not have until now. Reading again
  // finds those that were reported before.
  const recorded = await getTopUp(deps.database, topUp.id);
  if (recorded.paymentIntentId === null) return verdict;
  return recordVerdict(
    deps,
    recorded,
    verdictOfIntent(await readIntent(deps.stripe, recorded.paymentIntentId), recorded),
  );
}

/** A payment that an operator keeps although it does not match was decided on when the operator ended its top-up. */
async function readVerdictOf(deps: AskDeps, topUp: TopUp): Promise<Verdict> {
  try {
    return await readVerdict(deps, topUp);
  } catch (error) {
    const ended = topUp.status === 'pending' ? undefined : recordedUnpaid(topUp);
    if (!(error instanceof PaymentMismatchError) || !ended) throw error;
    return ended;
  }
}

async function readVerdict({ stripe }: AskDeps, topUp: TopUp): Promise<Verdict> {
  const { sessionId, paymentIntentId, status, seenVerdict } = topUp;
  // Only the session of a checkout shows its tax.
  if (topUp.isTaxed && sessionId !== null && seenVerdict !== 'paid') {
    return readFromSession(stripe, topUp, sessionId);
  }
  if (paymentIntentId !== null) {
    const verdict = verdictOfIntent(await readIntent(stripe, paymentIntentId), topUp);
    if (verdict.kind === 'open' && verdict.needsPayer && isTooLateToConfirm(topUp)) {
      await cancelIntent(stripe, paymentIntentId);
      return verdictOfIntent(await readIntent(stripe, paymentIntentId), topUp);
    }
    if (verdict.kind !== 'paid' && sessionId !== null)
      return readFromSession(stripe, topUp, sessionId);
    // Reconciliation found this payment of an earlier session. The later session must not be paid too.
    if (sessionId !== null && status === 'pending') await expireSession(stripe, sessionId);
    return verdict;
  }
  if (sessionId !== null) return readFromSession(stripe, topUp, sessionId);
  return recordedUnpaid(topUp) ?? { kind: isTooLateToOpen(topUp) ? 'expired' : 'open' };
}

/** The verdict of a row that an earlier step saw as expired or failed. */
export function recordedUnpaid(topUp: TopUp): Unpaid | undefined {
  switch (topUp.seenVerdict) {
    case 'expired':
      return { kind: 'expired' };
    case 'failed':
      return storedFailureOf(topUp);
    case 'paid':
    case null:
      return undefined;
  }
}

type Unpaid = Extract<Verdict, { kind: 'expired' | 'failed' }>;

/** Whether the cardholder has had the whole time to confirm a payment from the saved card. */
export function isTooLateToConfirm({ method, ageMs }: TopUp): boolean {
  return method === 'direct' && ageMs > AUTHENTICATED_WITHIN_MS;
}

async function readFromSession(stripe: Stripe, topUp: TopUp, sessionId: string): Promise<Verdict> {
  return verdictOfSession(await readSession(stripe, sessionId), topUp);
}

/**
 * Records a final verdict in the row, and returns the one that counts: the row's first, unless the payment was made. A
 * declined payment from the saved card is closed at the processor, so that nobody can make it later; the row keeps the
 * reason, which the canceled intent no longer shows.
 */
export async function recordVerdict(
  { database, stripe, tellOwner }: AskDeps,
  topUp: TopUp,
  verdict: Verdict,
): Promise<Verdict> {
  const { id, method, paymentIntentId } = topUp;
  switch (verdict.kind) {
    case 'open':
      if (verdict.isUnderWay && !topUp.isUnderWay) await recordUnderWay(database, id);
      if (verdict.needsPayer && (await recordAuthenticationAsked(database, id))) tellOwner?.(topUp);
      return verdict;
    case 'paid':
      if (await recordPaid(database, id, verdict)) return verdict;
      throw new PaymentMismatchError('the payment is not the one recorded for the top-up');
    case 'expired':
    case 'failed': {
      const kept = keptOf(topUp, await recordUnpaid(database, topUp, seenOf(verdict)), verdict);
      if (kept.kind === 'failed' && method === 'direct' && paymentIntentId !== null) {
        await cancelIntent(stripe, paymentIntentId);
      }
      return kept;
    }
  }
}

function seenOf(verdict: Unpaid): SeenUnpaid {
  if (verdict.kind === 'expired') return { kind: 'expired' };
  const { failure, refusedCardId } = verdict;
  return { kind: 'failed', code: failure.code, refusedCardId };
}

function keptOf(
  { method }: TopUp,
  { verdict, failureCode, refusedCardId, isPending }: Kept,
  read: Unpaid,
): Unpaid {
  if (verdict === 'expired') return { kind: 'expired' };
  if (verdict === 'failed') {
    return storedFailureOf({ method, seenFailureCode: failureCode, refusedCardId });
  }
  // Releases before these verdicts were recorded ended it.
  if (!isPending) return read;
  throw new Error(
    'The top-up names another payment than the one that was read. The next attempt reads that one.',
  );
}
