/** Doctor's check of Stripe: compares what Stripe lists with the ledger, top-up by top-up. */
import type { Stripe } from 'stripe';
import { differenceText, paymentsText } from '../domain/difference.ts';
import { HOUR_MS } from '../domain/durations.ts';
import { uuidFloor, uuidOf } from '../domain/ids.ts';
import { findingsOf, type Finding } from '../store/doctor/findings.ts';
import {
  findBooked,
  listBookedThroughProcessor,
  listClaims,
  type Booked,
  type Claim,
} from '../store/top-ups/reconciliation.ts';
import { listSettled } from '../store/top-ups/settled-differences.ts';
import type { Database } from '../store/database.ts';
import type { ReportedReversal } from '../store/top-ups/reversals.ts';
import { claimOf, compareTopUp, creditedPaymentOf, isSameClaim, isSettled } from './compare.ts';
import {
  expandedChargeOf,
  paymentDisputeOf,
  reportOfDispute,
  reportOfRefund,
  reportOfWarning,
} from './reversals.ts';
import { idOf, type Disputes, type IntentFields, type PaymentDispute } from './verdict.ts';

export const PROCESSOR_CHECK = 'the ledger agrees with the processor';

/** What Stripe lists, with refunds and disputes by payment intent. */
interface StripeBooks {
  readonly payments: readonly IntentFields[];
  readonly reversals: ReadonlyMap<string, readonly ReportedReversal[]>;
  readonly disputes: Disputes;
}

/** A payment is made after its top-up was requested; Stripe's clock may be behind ours. */
const SKEW_MS = HOUR_MS;

/** Compares the top-ups that were requested since this time, in Unix milliseconds; all of them by default. */
export async function examineProcessor(
  database: Database,
  stripe: Stripe,
  sinceMs = 0,
): Promise<Finding[]> {
  const idMin = uuidFloor(sinceMs);
  // Reads the ledger first, so that a payment made between the two reads is not expected to be credited yet.
  // Reads claims before and after Stripe, so that a claim that changed meanwhile agrees with one of the two
  // reads.
  const before = await listBookedThroughProcessor(database, idMin);
  const claimsBefore = await listClaims(database, idsOf(before));
  const books = await readBooks(stripe, Math.max(0, sinceMs - SKEW_MS));
  const named = books.payments.flatMap((payment) => namedBy(payment) ?? []);
  const after = await findBooked(
    database,
    named,
    books.payments.map(({ id }) => id),
  );
  const claimsAfter = await listClaims(database, idsOf([...before, ...after]));
  const settlements = Map.groupBy(await listSettled(database), ({ topUpId }) => topUpId);
  const booked = new Map([...before, ...after].map((each) => [each.topUpId, each]));
  const intents = intentsByTopUp(books.payments, [...booked.values()]);
  const earlier = Map.groupBy(claimsBefore, ({ topUpId }) => topUpId);
  const later = Map.groupBy(claimsAfter, ({ topUpId }) => topUpId);
  const topUpIds = new Set(
    [...booked.keys(), ...named, ...settlements.keys()].filter((id) => id >= idMin),
  );
  const offenders = [...topUpIds].flatMap((topUpId) => {
    const mine = booked.get(topUpId);
    const payments = intents.get(topUpId) ?? [];
    const shown = shownFor(mine, books);
    const settled = settlements.get(topUpId) ?? [];
    const { disputes } = books;
    const compare = (recorded: readonly Claim[] = []) =>
      compareTopUp({ booked: mine, intents: payments, recorded, shown, disputes, settled });
    const kindsBefore = compare(earlier.get(topUpId)).map(({ kind }) => kind);
    return compare(later.get(topUpId))
      .filter(({ kind }) => kindsBefore.includes(kind))
      .filter((found) => !isSettled(found, settled))
      .map((found) => ({
        subject: `top-up ${topUpId}`,
        detail: `${differenceText(found.kind, found.processorMicros, found.ledgerMicros)}: Stripe ${found.processorMicros}, ledger ${found.ledgerMicros} (${
          found.kind === 'reversals'
            ? detailOfClaims(later.get(topUpId) ?? [], shown)
            : paymentsText(
                payments.map(({ id }) => id),
                mine ? creditedPaymentOf(mine) : null,
              )
        })`,
      }));
  });
  return findingsOf('processor', PROCESSOR_CHECK, offenders);
}

/** Reads everything that was created since then. */
async function readBooks(stripe: Stripe, sinceMs: number): Promise<StripeBooks> {
  const page = {
    limit: 100,
    ...(sinceMs > 0 && { created: { gte: Math.floor(sinceMs / 1_000) } }),
  };
  const payments: IntentFields[] = [];
  const reversals = new Map<string, ReportedReversal[]>();
  const disputes = new Map<string, PaymentDispute[]>();
  const add = (intent: Parameters<typeof idOf>[0], reported: ReportedReversal) => {
    const id = idOf(intent);
    if (id !== undefined) reversals.set(id, [...(reversals.get(id) ?? []), reported]);
  };
  const intents = stripe.paymentIntents.list({ ...page, expand: ['data.latest_charge'] });
  for await (const intent of intents)
    if (intent.status === 'succeeded') payments.push(fieldsOf(intent));
  // Top-ups are in US dollars only, so other currencies do not belong to one.
  for await (const refund of stripe.refunds.list(page)) {
    if (refund.currency === 'usd') add(refund.payment_intent, reportOfRefund(refund));
  }
  const withCharges = { ...page, expand: ['data.charge'] };
  for await (const dispute of stripe.disputes.list(withCharges)) {
    const paymentId = idOf(dispute.payment_intent) ?? '';
    disputes.set(paymentId, [...(disputes.get(paymentId) ?? []), ...paymentDisputeOf(dispute)]);
    if (expandedChargeOf(dispute).currency === 'usd')
      add(dispute.payment_intent, reportOfDispute(dispute));
  }
  for await (const warning of stripe.radar.earlyFraudWarnings.list(withCharges)) {
    const charge = expandedChargeOf(warning);
    if (charge.currency !== 'usd') continue;
    for (const reported of reportOfWarning(warning)) add(charge.payment_intent, reported);
  }
  return { payments, reversals, disputes };
}

/** What the comparison reads of a payment, without the rest: the payments of all time are in memory at once. */
function fieldsOf(payment: Stripe.PaymentIntent): IntentFields {
  const { id, status, currency, amount_received, metadata, last_payment_error } = payment;
  const { top_up_id } = metadata;
  const { latest_charge: charge } = payment;
  return {
    id,
    status,
    currency,
    amount_received,
    metadata: top_up_id === undefined ? {} : { top_up_id },
    last_payment_error,
    latest_charge:
      typeof charge === 'object' && charge !== null
        ? { amount_refunded: charge.amount_refunded, disputed: charge.disputed }
        : charge,
  };
}

/** UUID of the top-up in a payment's metadata, if it has one. */
function namedBy(payment: IntentFields): string | undefined {
  return uuidOf('topUp', payment.metadata['top_up_id'] ?? '');
}

/** The payments of each top-up: the one in its row first, then those that name it in their metadata. */
function intentsByTopUp(payments: readonly IntentFields[], booked: readonly Booked[]) {
  const byId = new Map(payments.map((payment) => [payment.id, payment]));
  const intents = new Map<string, IntentFields[]>();
  const add = (topUpId: string, payment: IntentFields) => {
    const list = intents.get(topUpId) ?? [];
    if (!list.includes(payment)) intents.set(topUpId, [...list, payment]);
  };
  for (const { topUpId, paymentIntentId } of booked) {
    const payment = byId.get(paymentIntentId ?? '');
    if (payment) add(topUpId, payment);
  }
  for (const payment of payments) {
    const topUpId = namedBy(payment);
    if (topUpId !== undefined) add(topUpId, payment);
  }
  return intents;
}

function shownFor(booked: Booked | undefined, { reversals }: StripeBooks): Claim[] {
  if (!booked) return [];
  const reported = reversals.get(booked.paymentIntentId ?? '') ?? [];
  return reported.flatMap((each) => claimOf(booked.topUpId, each) ?? []);
}

/** The claims that only one side has. */
function detailOfClaims(recorded: readonly Claim[], shown: readonly Claim[]): string {
  return `only at Stripe: ${textOfOwn(shown, recorded)}; only in the ledger: ${textOfOwn(recorded, shown)}`;
}

function textOfOwn(own: readonly Claim[], others: readonly Claim[]): string {
  const texts = own
    .filter((claim) => !others.some((other) => isSameClaim(claim, other)))
    .map(({ processorId, status, grossMicros }) => `${processorId} ${status} ${grossMicros}`);
  return texts.join(', ') || 'nothing';
}

function idsOf(booked: readonly Booked[]): string[] {
  return booked.map(({ topUpId }) => topUpId);
}
