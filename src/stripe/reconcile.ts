/**
 * The processor's books held against ours, a page or a top-up at a time. Of each top-up the ledger is read first:
 * what is paid between the two looks is met as not credited yet, never as credited without a payment.
 */
import { Stripe } from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import { asMicros, microsOfCents, type Micros } from '../domain/money.ts';
import { CLAIMS } from '../domain/reversal.ts';
import type { Database } from '../store/database.ts';
import {
  findBooked,
  listClaims,
  listDifferencesOf,
  recordDifferences,
  type Booked,
  type Claim,
  type Difference,
} from '../store/audit/reconciliation.ts';
import type { ReportedReversal } from '../store/top-ups/reversals.ts';
import { findTopUp, type TopUp } from '../store/top-ups/top-ups.ts';
import { readReversals, reportOfDispute, reportOfRefund } from './reversals.ts';
import { readIntent, readSession } from './calls.ts';
import { idOf, PaymentMismatchError, verdictOfIntent } from './verdict.ts';

export interface Books {
  readonly database: Database;
  readonly stripe: Stripe;
}

/** What the processor lists of the time from `since` to `until`, newest first. */
export interface Walk {
  readonly list: 'balanceTransactions' | 'refunds' | 'disputes';
  /** Unix seconds. */
  readonly since: number;
  readonly until: number;
  /** The last object of the page before. */
  readonly after: string | null;
}

/** A top-up that may differ, with a payment that it may not know of. UUID. */
export interface Suspect {
  readonly topUpId: string;
  readonly paymentIntentId?: string;
}

export interface Page {
  readonly suspects: readonly Suspect[];
  /** Of the next page, or null at the end. */
  readonly after: string | null;
}

type Found = Omit<Difference, 'topUpId' | 'paymentIntentIds' | 'since'>;

export interface Examined {
  readonly differences: readonly Found[];
  /** What its workflow should look at again, where that may change something. */
  readonly nudge: 'payment' | 'reversal' | undefined;
}

const PAGE = 100;
/** What has no session is under way for seconds; what is not over by then has nobody who ends it. */
const ABANDONED_AFTER_MS = 600_000;

/** One page of the processor's books: those top-ups of it that are not booked here just so. */
export async function readPage({ database, stripe }: Books, walk: Walk): Promise<Page> {
  const { list, since, until, after } = walk;
  const page = await stripe[list].list({
    created: { gte: since, lte: until },
    limit: PAGE,
    ...(after !== null && { starting_after: after }),
    ...(list === 'balanceTransactions' && { expand: ['data.source'] }),
  });
  const objects = page.data.map((object) =>
    object.object === 'balance_transaction' ? object.source : object,
  );
  return {
    suspects: await suspectsOf(database, objects),
    after: page.has_more ? (page.data.at(-1)?.id ?? null) : null,
  };
}

/** What is neither about a payment that names a top-up nor about a payment of one is not ours. */
async function suspectsOf(database: Database, objects: readonly unknown[]): Promise<Suspect[]> {
  const reports = objects.flatMap(reportOf);
  const booked = await findBooked(
    database,
    reports.flatMap(({ topUpId }) => topUpId ?? []),
    reports.map(({ paymentIntentId }) => paymentIntentId),
  );
  const claims = await listClaims(
    database,
    booked.map(({ topUpId }) => topUpId),
  );
  const suspects = reports.flatMap(({ topUpId, paymentIntentId, object }): Suspect[] => {
    const mine = booked.find(
      (row) => row.topUpId === topUpId || row.paymentIntentId === paymentIntentId,
    );
    const id = mine?.topUpId ?? topUpId;
    const isOurs = id !== undefined && !(mine && isBooked(object, paymentIntentId, mine, claims));
    return isOurs ? [{ topUpId: id, paymentIntentId }] : [];
  });
  return [...new Map(suspects.map((each) => [Object.values(each).join(), each])).values()];
}

type Booking = Stripe.Charge | Stripe.Refund | Stripe.Dispute;

interface Report {
  readonly paymentIntentId: string;
  readonly topUpId: string | undefined;
  readonly object: Booking;
}

/** Nothing of payouts, fees and what else the processor books. */
function reportOf(object: unknown): Report[] {
  const booking = object as Booking | null;
  const paymentIntentId = idOf(booking?.payment_intent);
  if (!booking || paymentIntentId === undefined) return [];
  const topUpId = uuidOf('topUp', booking.metadata?.['top_up_id'] ?? '');
  return [{ paymentIntentId, topUpId, object: booking }];
}

function isBooked(
  object: Booking,
  paymentIntentId: string,
  { topUpId, ...booked }: Booked,
  claims: readonly Claim[],
): boolean {
  if (object.currency !== 'usd') return false;
  if (object.object === 'charge') {
    return (
      booked.paymentIntentId === paymentIntentId &&
      booked.creditedMicros === microsOfCents(object.amount)
    );
  }
  const reported = object.object === 'refund' ? reportOfRefund(object) : reportOfDispute(object);
  const wanted = claimOf(topUpId, reported);
  const recorded = claims.find(({ processorId }) => processorId === reported.processorId);
  return textOf(recorded) === textOf(wanted);
}

/** What a refund or a dispute takes or holds; undefined when that is nothing. */
function claimOf(topUpId: string, reported: ReportedReversal): Claim | undefined {
  const { processorId, status, amountMicros } = reported;
  if (CLAIMS[status] === 'nothing') return undefined;
  return { topUpId, processorId, status, amountMicros };
}

const textOf = (claim: Claim | undefined) =>
  claim && `${claim.processorId} ${claim.status} ${claim.amountMicros}`;

/** Asks the processor about one top-up, and writes down what differs. */
export async function examine(books: Books, suspect: Suspect): Promise<Examined> {
  const { database, stripe } = books;
  const { topUpId, paymentIntentId } = suspect;
  const [booked] = await findBooked(database, [topUpId], []);
  const topUp = await findTopUp(database, topUpId);
  const before = await listDifferencesOf(database, topUpId);
  const { intents, isUnderWay } = await readPayments(stripe, topUp, [
    ...before.flatMap(({ paymentIntentIds }) => paymentIntentIds),
    ...(paymentIntentId === undefined ? [] : [paymentIntentId]),
  ]);
  const payments = intents.filter(({ status }) => status === 'succeeded');
  const examined = topUp
    ? compared(topUp, booked?.creditedMicros ?? asMicros(0), payments, isUnderWay)
    : { differences: differing('unknown_top_up', keptOf(payments), 0), nudge: undefined };
  const reversals = booked ? await compareReversals(books, booked) : [];
  const differences = [...examined.differences, ...reversals];
  const paymentIntentIds = intents.map(({ id }) => id);
  await recordDifferences(
    database,
    topUpId,
    differences.map((found) => ({ ...found, paymentIntentIds })),
  );
  return { differences, nudge: reversals.length > 0 ? 'reversal' : examined.nudge };
}

function compared(
  topUp: TopUp,
  creditedMicros: Micros,
  payments: readonly Stripe.PaymentIntent[],
  isUnderWay: boolean,
): Examined {
  const { good, other } = Object.groupBy(payments, (intent) =>
    isPaymentOf(intent, topUp) ? 'good' : 'other',
  );
  const [first, ...more] = good ?? [];
  const paidMicros = first ? microsOfCents(first.amount_received) : 0;
  const isAbandoned =
    topUp.status === 'pending' &&
    payments.length === 0 &&
    !isUnderWay &&
    (topUp.sessionId !== null || Date.parse(topUp.createdAt) < Date.now() - ABANDONED_AFTER_MS);
  const isCredited = creditedMicros > 0;
  return {
    differences: [
      ...differing('payment_mismatch', keptOf(other ?? []), 0),
      ...(keptOf(more) > 0 ? differing('paid_twice', keptOf(good ?? []), creditedMicros) : []),
      ...(first && !isCredited ? differing('not_credited', paidMicros, 0) : []),
      ...(first || !isCredited ? [] : differing('not_paid', 0, creditedMicros)),
    ],
    nudge: isAbandoned || (first && !isCredited) ? 'payment' : undefined,
  };
}

/** Of a top-up that was credited for a payment. */
async function compareReversals(
  { database, stripe }: Books,
  { topUpId, paymentIntentId, creditedMicros }: Booked,
): Promise<readonly Found[]> {
  if (paymentIntentId === null || creditedMicros === 0) return [];
  const recorded = await listClaims(database, [topUpId]);
  const reported = await unlessMissing(readReversals(stripe, paymentIntentId));
  const shown = (reported ?? []).flatMap((each) => claimOf(topUpId, each) ?? []);
  const texts = new Set(recorded.map(textOf));
  if (shown.length === texts.size && shown.every((claim) => texts.has(textOf(claim)))) return [];
  return [{ kind: 'reversals', processorMicros: sumOf(shown), ledgerMicros: sumOf(recorded) }];
}

function sumOf(claims: readonly Claim[]): Micros {
  return asMicros(claims.reduce((sum, { amountMicros }) => sum + amountMicros, 0));
}

function differing(
  kind: Found['kind'],
  processorMicros: number,
  ledgerMicros: number,
): readonly Found[] {
  if (processorMicros === ledgerMicros) return [];
  return [
    { kind, processorMicros: asMicros(processorMicros), ledgerMicros: asMicros(ledgerMicros) },
  ];
}

function isPaymentOf(intent: Stripe.PaymentIntent, topUp: TopUp): boolean {
  try {
    return verdictOfIntent(intent, topUp).kind === 'paid';
  } catch (error) {
    if (error instanceof PaymentMismatchError) return false;
    throw error;
  }
}

/** What of these payments was not refunded. */
function keptOf(payments: readonly Stripe.PaymentIntent[]): Micros {
  const cents = payments.map((intent) => {
    const charge = intent.latest_charge;
    const refunded = typeof charge === 'object' ? (charge?.amount_refunded ?? 0) : 0;
    return intent.amount_received - refunded;
  });
  return microsOfCents(cents.reduce((sum, each) => sum + each, 0));
}

interface Payments {
  /** The one that our row knows first. */
  readonly intents: readonly Stripe.PaymentIntent[];
  /** Whether a payment may yet be made without us. */
  readonly isUnderWay: boolean;
}

async function readPayments(
  stripe: Stripe,
  topUp: TopUp | null,
  others: readonly string[],
): Promise<Payments> {
  const session = topUp?.sessionId
    ? await unlessMissing(readSession(stripe, topUp.sessionId))
    : undefined;
  const ids = [topUp?.paymentIntentId, idOf(session?.payment_intent), ...others];
  const read = await Promise.all(
    [...new Set(ids.filter((id) => id != null))].map((id) => unlessMissing(readIntent(stripe, id))),
  );
  const intents = read.filter((intent) => intent !== undefined);
  return {
    intents,
    isUnderWay:
      session?.status === 'open' ||
      intents.some(({ status }) => status === 'processing' || status === 'requires_action'),
  };
}

/** Another account's, or deleted with the test data: there is no such payment. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Stripe.errors.StripeError && error.code === 'resource_missing') {
      return undefined;
    }
    throw error;
  }
}
