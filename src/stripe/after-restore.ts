/**
 * Brings a restored ledger up to what Stripe shows since the restored moment: what was paid is credited, what was
 * refunded or disputed is taken back, and top-ups that the ledger lost are entered again. Needs no worker, so that it
 * can end before charges and automatic top-ups begin again. Every step may be repeated, and believes Stripe alone.
 */
import type { Stripe } from 'stripe';
import { NIL_UUID, uuidOf, wireId } from '../domain/ids.ts';
import { microsOfCents } from '../domain/money.ts';
import { isCredited } from '../domain/top-up.ts';
import {
  getRestoreStart,
  listDiffering,
  listUnsettled,
  recordWalk,
} from '../store/top-ups/reconciliation.ts';
import { readClock } from '../store/database.ts';
import { creditTopUp } from '../store/top-ups/credit-top-up.ts';
import { enterLostTopUp } from '../store/top-ups/enter-lost-top-up.ts';
import { notePendingTopUps } from '../store/top-ups/note-pending-top-ups.ts';
import { adoptCustomer } from '../store/top-ups/processor-customers.ts';
import { findTopUp, type TopUp } from '../store/top-ups/top-ups.ts';
import { ask } from './ask-processor.ts';
import { readIntent } from './calls.ts';
import { examine, readPage, type Books, type Suspect, type Walk } from './reconcile.ts';
import { recordFoundSession } from './recall.ts';
import { syncReversals } from './sync-reversals.ts';
import { idOf, PaymentMismatchError } from './verdict.ts';

export interface TakenOver {
  /** Top-ups that were compared with Stripe. */
  readonly looked: number;
  /** UUIDs of those that were credited. */
  readonly credited: readonly string[];
  /** UUIDs of those that the restored ledger did not have. */
  readonly entered: readonly string[];
}

/** The same while it works, so that the caller still has it when something fails: each is committed by itself. */
export interface Progress {
  readonly looked: Set<string>;
  readonly credited: Set<string>;
  readonly entered: Set<string>;
}

interface Run extends Books, Progress {
  readonly warn: (message: string) => void;
}

/** A refund may fail, and a dispute may change, long after it was made. */
const REVERSALS_CHANGE_WITHIN_SECONDS = 60 * 86_400;
const PAGE = 100;

export const nothingYet = (): Progress => ({
  looked: new Set(),
  credited: new Set(),
  entered: new Set(),
});

export async function takeOverSince(
  books: Books,
  say: (what: string) => void,
  progress = nothingYet(),
): Promise<TakenOver> {
  const run: Run = { ...books, ...progress, warn: say };
  const { database } = run;
  const since = Math.floor(Date.parse(await getRestoreStart(database)) / 1_000);
  const until = Math.floor((await readClock(database)) / 1_000);

  say('Customers');
  await adoptCustomers(run, since);
  say('Pending top-ups');
  await forEachPage(
    (page) => listUnsettled(database, page),
    (topUpId) => takeOver(run, { topUpId }),
  );
  say('Checkouts');
  await takeOverSessions(run, since);
  say('Payments');
  await takeOverListed(run, { list: 'balanceTransactions', since, until });
  say('Refunds and disputes');
  const earlier = { since: since - REVERSALS_CHANGE_WITHIN_SECONDS, until };
  await takeOverListed(run, { list: 'refunds', ...earlier });
  await takeOverListed(run, { list: 'disputes', ...earlier });
  await takeOverListed(run, { list: 'earlyFraudWarnings', ...earlier });
  say('What differed');
  await forEachPage(
    (page) => listDiffering(database, page),
    (topUpId) => takeOver(run, { topUpId }),
  );

  await notePendingTopUps(database);
  await recordWalk(database, new Date(until * 1_000).toISOString());
  return {
    looked: run.looked.size,
    credited: [...run.credited],
    entered: [...run.entered],
  };
}

/** An account that first topped up after the restored moment has its saved cards with the customer of that time. */
async function adoptCustomers({ database, stripe }: Books, since: number): Promise<void> {
  for await (const { id, metadata } of stripe.customers.list({
    created: { gte: since },
    limit: PAGE,
  })) {
    const accountId = uuidOf('account', metadata['account_id'] ?? '');
    if (accountId !== undefined) await adoptCustomer(database, accountId, id);
  }
}

/** Takes over sessions that the ledger does not know. Their consumers have the address, and may still pay there. */
async function takeOverSessions(run: Run, since: number): Promise<void> {
  const { database, stripe } = run;
  for await (const session of stripe.checkout.sessions.list({
    created: { gte: since },
    limit: PAGE,
  })) {
    const topUpId = uuidOf('topUp', session.metadata?.['top_up_id'] ?? '');
    if (topUpId === undefined || session.status === 'expired') continue;
    const topUp = await findTopUp(database, topUpId);
    if (topUp?.sessionId != null) continue;
    if (topUp) await recordFoundSession(database, topUpId, session);
    else if (!(await enter(run, topUpId, session, session))) continue;
    await takeOver(run, { topUpId });
  }
}

async function takeOverListed(run: Run, walk: Omit<Walk, 'after'>): Promise<void> {
  let after: string | null = null;
  do {
    const page = await readPage(run, { ...walk, after });
    for (const suspect of page.suspects) await takeOver(run, suspect);
    ({ after } = page);
  } while (after !== null);
}

/** One top-up: its payment credited, its refunds and disputes as Stripe has them, what still differs written down. */
async function takeOver(run: Run, suspect: Suspect): Promise<void> {
  const { database } = run;
  const { topUpId } = suspect;
  run.looked.add(topUpId);
  const topUp = (await findTopUp(database, topUpId)) ?? (await enterPaid(run, suspect));
  // Names in the row a payment that is not there yet.
  await examine(run, suspect);
  if (!topUp) return;
  if (await creditIfPaid(run, topUp)) {
    const { paymentIntentId } = (await findTopUp(database, topUpId)) ?? topUp;
    if (paymentIntentId !== null) await syncReversals(run, topUpId, paymentIntentId);
  }
  await examine(run, { topUpId });
}

/** Whether it is credited now. */
async function creditIfPaid(run: Run, { id }: TopUp): Promise<boolean> {
  const topUp = await findTopUp(run.database, id);
  if (!topUp) return false;
  if (isCredited(topUp.status)) return true;
  try {
    await ask(run, topUp);
  } catch (error) {
    // For a person: the comparison has written it down.
    if (!(error instanceof PaymentMismatchError)) throw error;
    return false;
  }
  const result = await creditTopUp(run.database, id);
  if (result === 'credited') run.credited.add(id);
  return result !== 'not_paid';
}

/** Enters the top-up of a payment that the ledger does not know, if it was made by us for one of our accounts. */
async function enterPaid(run: Run, { topUpId, paymentIntentId }: Suspect): Promise<TopUp | null> {
  if (paymentIntentId === undefined) return null;
  const { stripe, database } = run;
  const intent = await readIntent(stripe, paymentIntentId);
  if (intent.metadata['top_up_id'] !== wireId('topUp', topUpId)) return null;
  const sessions = await stripe.checkout.sessions.list({ payment_intent: intent.id, limit: 1 });
  await enter(run, topUpId, intent, sessions.data[0]);
  return findTopUp(database, topUpId);
}

async function enter(
  run: Run,
  topUpId: string,
  payment: Stripe.PaymentIntent | Stripe.Checkout.Session,
  session: Stripe.Checkout.Session | undefined,
): Promise<boolean> {
  const accountId = uuidOf('account', payment.metadata?.['account_id'] ?? '');
  const customerId = idOf(payment.customer) ?? null;
  const cents = centsIn(payment, session);
  if (payment.currency !== 'usd' || !cents) return false;
  const isEntered = await enterLostTopUp(run.database, {
    id: topUpId,
    payer: accountId === undefined ? { customerId } : { accountId },
    amountMicros: microsOfCents(cents.net),
    taxMicros: cents.tax === undefined ? null : microsOfCents(cents.tax),
    taxCalculationId: 'hooks' in payment ? (payment.hooks?.inputs?.tax?.calculation ?? null) : null,
    session: session
      ? {
          id: session.id,
          url: session.url,
          expiresAt: new Date(session.expires_at * 1_000).toISOString(),
        }
      : null,
  });
  if (isEntered) run.entered.add(topUpId);
  return isEntered;
}

/** A checkout's tax is in its session; that of a direct top-up, which its intent was made with, in the metadata. */
function centsIn(
  payment: Stripe.PaymentIntent | Stripe.Checkout.Session,
  session: Stripe.Checkout.Session | undefined,
): { readonly net: number; readonly tax: number | undefined } | undefined {
  const total = session ? session.amount_total : 'amount' in payment ? payment.amount : null;
  if (total === null) return undefined;
  const metadata = payment.metadata?.['tax_cents'];
  const ofIntent = metadata === undefined ? undefined : Number(metadata);
  const ofSession = session?.automatic_tax.enabled
    ? (session.total_details?.amount_tax ?? 0)
    : undefined;
  const tax = session ? ofSession : ofIntent;
  return { net: total - (tax ?? 0), tax };
}

async function forEachPage(
  list: (page: { afterId: string; limit: number }) => Promise<readonly string[]>,
  act: (id: string) => Promise<void>,
): Promise<void> {
  let afterId: string | undefined = NIL_UUID;
  while (afterId !== undefined) {
    const ids: readonly string[] = await list({ afterId, limit: PAGE });
    for (const id of ids) await act(id);
    afterId = ids.length < PAGE ? undefined : ids.at(-1);
  }
}
