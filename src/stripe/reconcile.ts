/**
 * Compares the processor's books with ours, a page or a top-up at a time. Reads the ledger first for each
 * top-up, so that a payment made between the two reads shows as not credited yet, never as credited without a
 * payment.
 */
import type { Stripe } from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import { asMicros, microsOfCents, type Micros } from '../domain/money.ts';
import type { Database } from '../store/database.ts';
import {
  findBooked,
  listClaims,
  listDifferencesOf,
  recordDifferences,
  type Booked,
  type Claim,
} from '../store/top-ups/reconciliation.ts';
import { recordPaid } from '../store/top-ups/payment-evidence.ts';
import { listSettledOf } from '../store/top-ups/settled-differences.ts';
import { findTopUp, type TopUp } from '../store/top-ups/top-ups.ts';
import { isTooLateToConfirm } from './ask-processor.ts';
import { readIntent, readSession } from './calls.ts';
import {
  claimOf,
  compareTopUp,
  creditedPaymentOf,
  isPaymentOf,
  isSameClaim,
  type Found,
} from './compare.ts';
import { isMissing } from './errors.ts';
import {
  expandedChargeOf,
  readDisputes,
  readReversals,
  reportOfDispute,
  reportOfRefund,
  reportOfWarning,
} from './reversals.ts';
import { idOf, keptCentsOf, taxCentsOf, verdictOfIntent } from './verdict.ts';

export interface Books {
  readonly database: Database;
  readonly stripe: Stripe;
}

/** A list of the processor from `since` to `until`, newest first. */
export interface Walk {
  readonly list: 'balanceTransactions' | 'refunds' | 'disputes' | 'earlyFraudWarnings';
  /** Unix seconds. */
  readonly since: number;
  readonly until: number;
  /** The last object of the page before. */
  readonly after: string | null;
}

/** A top-up (UUID) that may differ, with a payment that its row may not have. */
export interface Suspect {
  readonly topUpId: string;
  readonly paymentIntentId?: string;
}

export interface Page {
  readonly suspects: readonly Suspect[];
  /** Cursor of the next page, or null at the end. */
  readonly after: string | null;
}

export interface Examined {
  readonly differences: readonly Found[];
  /** What its workflow should check again, if that may change something. */
  readonly nudge: 'payment' | 'reversal' | undefined;
}

type Listed =
  | Stripe.BalanceTransaction
  | Stripe.Refund
  | Stripe.Dispute
  | Stripe.Radar.EarlyFraudWarning;

const LISTS: Readonly<
  Record<
    Walk['list'],
    (
      stripe: Stripe,
      range: Stripe.PaginationParams & { readonly created: Stripe.RangeQueryParam },
    ) => Promise<Stripe.ApiList<Listed>>
  >
> = {
  balanceTransactions: (stripe, range) =>
    stripe.balanceTransactions.list({ ...range, expand: ['data.source'] }),
  refunds: (stripe, range) => stripe.refunds.list(range),
  disputes: (stripe, range) => stripe.disputes.list(range),
  earlyFraudWarnings: (stripe, range) =>
    stripe.radar.earlyFraudWarnings.list({ ...range, expand: ['data.charge'] }),
};

export function isList(name: string): name is Walk['list'] {
  return Object.hasOwn(LISTS, name);
}

const PAGE = 100;
/** A top-up without a session takes seconds. If it is older than this, its workflow is gone. */
const ABANDONED_AFTER_MS = 600_000;

/** Reads one page of the processor's books, and returns its top-ups that our books do not match. */
export async function readPage({ database, stripe }: Books, walk: Walk): Promise<Page> {
  const { list, since, until, after } = walk;
  const range = {
    created: { gte: since, lte: until },
    limit: PAGE,
    ...(after !== null && { starting_after: after }),
  };
  const page = await LISTS[list](stripe, range);
  const objects = page.data.map((object) =>
    object.object === 'balance_transaction' ? object.source : object,
  );
  return {
    suspects: await suspectsOf(database, objects),
    after: page.has_more ? (page.data.at(-1)?.id ?? null) : null,
  };
}

/** Ignores objects whose payment neither names a top-up nor belongs to one. */
async function suspectsOf(
  database: Database,
  objects: readonly BookedObject[],
): Promise<Suspect[]> {
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

type BookedObject =
  | Exclude<Listed, Stripe.BalanceTransaction>
  | Stripe.BalanceTransaction['source'];
type Booking = Stripe.Charge | Stripe.Refund | Stripe.Dispute | Stripe.Radar.EarlyFraudWarning;

interface Report {
  readonly paymentIntentId: string;
  readonly topUpId: string | undefined;
  readonly object: Booking;
}

/** Empty for payouts, fees and other objects without a payment. */
function reportOf(object: BookedObject): Report[] {
  if (object === null || typeof object === 'string') return [];
  // A fraud warning has its payment's metadata in its charge.
  if (object.object === 'radar.early_fraud_warning') {
    return reportAbout(object, expandedChargeOf(object));
  }
  const isAboutPayment =
    object.object === 'charge' || object.object === 'refund' || object.object === 'dispute';
  return isAboutPayment ? reportAbout(object, object) : [];
}

function reportAbout(
  object: Booking,
  { payment_intent: intent, metadata }: Pick<Stripe.Refund, 'payment_intent' | 'metadata'>,
): Report[] {
  const paymentIntentId = idOf(intent);
  if (paymentIntentId === undefined) return [];
  const topUpId = uuidOf('topUp', metadata?.['top_up_id'] ?? '');
  return [{ paymentIntentId, topUpId, object }];
}

function isBooked(
  object: Booking,
  paymentIntentId: string,
  { topUpId, ...booked }: Booked,
  claims: readonly Claim[],
): boolean {
  if (object.object === 'radar.early_fraud_warning') {
    if (expandedChargeOf(object).currency !== 'usd') return false;
    const [warning] = reportOfWarning(object);
    if (!warning) return true;
    const recorded = claims.find(({ processorId }) => processorId === warning.processorId);
    return recorded?.isDismissed === true || isSameClaim(recorded, claimOf(topUpId, warning));
  }
  if (object.currency !== 'usd') return false;
  if (object.object === 'charge') {
    return (
      booked.paymentIntentId === paymentIntentId &&
      booked.creditedMicros + booked.taxMicros === microsOfCents(object.amount)
    );
  }
  const reported = object.object === 'refund' ? reportOfRefund(object) : reportOfDispute(object);
  const wanted = claimOf(topUpId, reported);
  const recorded = claims.find(({ processorId }) => processorId === reported.processorId);
  return isSameClaim(recorded, wanted);
}

/** Compares one top-up with the processor, and records the differences. */
export async function examine(books: Books, suspect: Suspect): Promise<Examined> {
  const { database, stripe } = books;
  const { topUpId, paymentIntentId } = suspect;
  const [booked] = await findBooked(database, [topUpId], []);
  const topUp = await findTopUp(database, topUpId);
  const before = await listDifferencesOf(database, topUpId);
  const payments = await readPayments(stripe, topUp, [
    ...before.flatMap(({ paymentIntentIds }) => paymentIntentIds),
    ...(paymentIntentId === undefined ? [] : [paymentIntentId]),
  ]);
  const { intents } = payments;
  // Until it is recorded, only the session of a checkout shows its tax.
  const taxMicros = payments.taxMicros ?? booked?.taxMicros ?? asMicros(0);
  const recorded = await listClaims(database, [topUpId]);
  const shown = await readClaims(stripe, booked);
  const creditedId = booked ? creditedPaymentOf(booked) : null;
  const disputes = await readDisputes(
    stripe,
    intents.filter(({ id }) => id !== creditedId),
  );
  const differences = compareTopUp({
    booked: booked && { ...booked, taxMicros },
    intents,
    recorded,
    shown,
    disputes,
    settled: await listSettledOf(database, topUpId),
  });
  if (topUp) await recordFound(database, { ...topUp, taxMicros }, intents);
  const paymentIntentIds = intents.map(({ id }) => id);
  await recordDifferences(
    database,
    topUpId,
    differences.map((found) => ({ ...found, paymentIntentIds })),
  );
  return { differences, nudge: topUp ? nudgeOf(topUp, payments, differences) : undefined };
}

/** Its workflow asks about what the row names, so a payment that was found is named there first. */
async function recordFound(
  database: Database,
  topUp: TopUp,
  intents: readonly Stripe.PaymentIntent[],
): Promise<void> {
  const { id, paymentIntentId } = topUp;
  if (paymentIntentId !== null) return;
  const found = intents.find((intent) => isPaymentOf(intent, { ...topUp, topUpId: id }));
  if (!found) return;
  const verdict = verdictOfIntent(found, topUp);
  if (verdict.kind === 'paid') await recordPaid(database, id, verdict);
}

function nudgeOf(
  topUp: TopUp,
  { intents, isUnderWay }: Payments,
  differences: readonly Found[],
): Examined['nudge'] {
  const has = (kind: Found['kind']) => differences.some((found) => found.kind === kind);
  if (has('reversals')) return 'reversal';
  const isAbandoned =
    topUp.status === 'pending' &&
    !intents.some((intent) => keptCentsOf(intent) > 0) &&
    !isUnderWay &&
    (topUp.sessionId !== null || topUp.ageMs > ABANDONED_AFTER_MS);
  return isAbandoned || has('not_credited') ? 'payment' : undefined;
}

/** Refunds and disputes of the payment in our row. */
async function readClaims(stripe: Stripe, booked: Booked | undefined): Promise<readonly Claim[]> {
  if (!booked || booked.paymentIntentId === null || booked.creditedMicros === 0) return [];
  const reported = await unlessMissing(readReversals(stripe, booked.paymentIntentId));
  return (reported ?? []).flatMap((each) => claimOf(booked.topUpId, each) ?? []);
}

interface Payments {
  /** The one in our row first. */
  readonly intents: readonly Stripe.PaymentIntent[];
  /** Whether a payment may still complete without our help. */
  readonly isUnderWay: boolean;
  /** The tax of a paid checkout, as its session shows it. */
  readonly taxMicros: Micros | undefined;
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
    taxMicros:
      topUp && session?.payment_status === 'paid'
        ? microsOfCents(taxCentsOf(session, topUp))
        : undefined,
    isUnderWay:
      session?.status === 'open' ||
      intents.some(
        ({ status }) =>
          status === 'processing' ||
          (status === 'requires_action' && !(topUp && isTooLateToConfirm(topUp))),
      ),
  };
}

/** Undefined if Stripe does not have the object: it belongs to another account, or was deleted with test data. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
