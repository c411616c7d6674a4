/**
 * The processor's books held against ours, a page or a top-up at a time. Of each top-up the ledger is read first:
 * what is paid between the two looks is met as not credited yet, never as credited without a payment.
 */
import type { Stripe } from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import { asMicros, microsOfCents, type Micros } from '../domain/money.ts';
import type { Database } from '../store/database.ts';
import {
  findBooked,
  listDifferencesOf,
  recordDifferences,
  type Difference,
} from '../store/reconciliation.ts';
import { findTopUp, type TopUp } from '../store/top-ups.ts';
import { readSession } from './stripe.ts';
import { PaymentMismatchError, verdictOfIntent } from './verdict.ts';

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
  /** Whether its workflow, asked to look again, may change something. */
  readonly nudge: boolean;
}

const PAGE = 100;
/** A direct top-up, or a session's making, takes seconds; what did not end by then has nobody who ends it. */
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
  const suspects = reports.flatMap((report): Suspect[] => {
    const { topUpId, paymentIntentId, paidMicros } = report;
    const mine = booked.find(
      (row) => row.topUpId === topUpId || row.paymentIntentId === paymentIntentId,
    );
    const id = mine?.topUpId ?? topUpId;
    const isBooked =
      mine?.paymentIntentId === paymentIntentId && mine.creditedMicros === paidMicros;
    return id === undefined || isBooked ? [] : [{ topUpId: id, paymentIntentId }];
  });
  return [...new Map(suspects.map((each) => [Object.values(each).join(), each])).values()];
}

interface Report {
  readonly paymentIntentId: string;
  readonly topUpId: string | undefined;
  /** Of a charge; undefined for what takes money back, which is looked at each time. */
  readonly paidMicros: Micros | undefined;
}

function reportOf(object: unknown): Report[] {
  const { payment_intent, metadata, amount, status, ...rest } = object as Partial<Stripe.Charge>;
  const paymentIntentId = idOf(payment_intent);
  if (paymentIntentId === undefined) return [];
  const isPayment = rest.object === 'charge' && status === 'succeeded';
  const topUpId = uuidOf('topUp', metadata?.['top_up_id'] ?? '');
  const paidMicros = isPayment ? microsOfCents(amount ?? 0) : undefined;
  return [{ paymentIntentId, topUpId, paidMicros }];
}

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
    : { differences: differing('unknown_top_up', keptOf(payments), 0), nudge: false };
  const paymentIntentIds = intents.map(({ id }) => id);
  await recordDifferences(
    database,
    topUpId,
    examined.differences.map((found) => ({ ...found, paymentIntentIds })),
  );
  return examined;
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
    !first &&
    !isUnderWay &&
    Date.parse(topUp.createdAt) < Date.now() - ABANDONED_AFTER_MS;
  const isCredited = creditedMicros > 0;
  return {
    differences: [
      ...differing('payment_mismatch', keptOf(other ?? []), 0),
      ...(keptOf(more) > 0 ? differing('paid_twice', keptOf(good ?? []), creditedMicros) : []),
      ...(first && !isCredited ? differing('not_credited', paidMicros, 0) : []),
      ...(first || !isCredited ? [] : differing('not_paid', 0, creditedMicros)),
    ],
    nudge: isAbandoned || (first !== undefined && !isCredited),
  };
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
  const session = topUp?.sessionId ? await readSession(stripe, topUp.sessionId) : undefined;
  const ids = [topUp?.paymentIntentId, idOf(session?.payment_intent), ...others];
  const intents = await Promise.all(
    [...new Set(ids.filter((id) => id != null))].map((id) =>
      stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] }),
    ),
  );
  return {
    intents,
    isUnderWay:
      session?.status === 'open' ||
      intents.some(({ status }) => status === 'processing' || status === 'requires_action'),
  };
}

function idOf(object: string | { readonly id: string } | null | undefined): string | undefined {
  return typeof object === 'string' ? object : object?.id;
}
