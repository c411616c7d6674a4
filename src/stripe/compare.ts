/**
 * Compares Stripe and the ledger for one top-up. Pure, and the only such comparison: reconciliation records the
 * differences, doctor prints them.
 */
import { asMicros, microsOfCents, type Micros } from '../domain/money.ts';
import { CLAIMS } from '../domain/reversal.ts';
import type { Booked, Claim, Difference } from '../store/top-ups/reconciliation.ts';
import type { ReportedReversal } from '../store/top-ups/reversals.ts';
import type { Settled } from '../store/top-ups/settled-differences.ts';
import {
  keptCentsOf,
  PaymentMismatchError,
  verdictOfIntent,
  type Disputes,
  type IntentFields,
} from './verdict.ts';

export type Found = Omit<
  Difference,
  'topUpId' | 'paymentIntentIds' | 'creditedPaymentIntentId' | 'since'
>;

export interface BothSides {
  /** Undefined: the ledger does not have the top-up. */
  readonly booked: Booked | undefined;
  /** Payment intents that may belong to it, the one in our row first, each with its charge expanded. */
  readonly intents: readonly IntentFields[];
  /** The refunds and disputes in the ledger. */
  readonly recorded: readonly Claim[];
  /** The refunds and disputes of the payment intent in our row. */
  readonly shown: readonly Claim[];
  /** The disputes of the payments that the top-up is not credited for. */
  readonly disputes: Disputes;
  /** What an operator settled about it: the latest of each kind. */
  readonly settled: readonly Settled[];
}

/** Settled differences are among the found ones. `isSettled` tells them apart. */
export function compareTopUp(sides: BothSides): readonly Found[] {
  const found = compareBooks(sides);
  return [...found, ...endedOf(sides.settled, found)];
}

/** Whether these amounts are the ones that were settled last. */
export function isSettled(
  { kind, processorMicros, ledgerMicros }: Found,
  settled: readonly Settled[],
): boolean {
  return settled.some(
    (each) =>
      each.kind === kind &&
      each.processorMicros === processorMicros &&
      each.ledgerMicros === ledgerMicros,
  );
}

/**
 * A settled difference that is no more has equal sums: the operator acted on money that Stripe has returned since, or
 * that is now in the ledger as well. It stays, so that it and its payments are compared again.
 */
function endedOf(settled: readonly Settled[], found: readonly Found[]): readonly Found[] {
  return settled
    .filter(({ kind }) => !found.some((each) => each.kind === kind))
    .map(({ kind, ledgerMicros }) => ({ kind, processorMicros: ledgerMicros, ledgerMicros }));
}

function compareBooks(sides: BothSides): readonly Found[] {
  const { booked, intents, recorded, shown } = sides;
  const keptOf = keptFor(sides);
  const payments = intents.filter(({ status }) => status === 'succeeded');
  if (!booked) return differing('unknown_top_up', keptOf(payments), 0);
  return [
    ...comparePayments(booked, payments, keptOf),
    ...compareReversals(booked, recorded, shown),
  ];
}

function comparePayments(
  booked: Booked,
  payments: readonly IntentFields[],
  keptOf: ReturnType<typeof keptFor>,
): readonly Found[] {
  const good = payments.filter((intent) => isPaymentOf(intent, booked));
  const other = payments.filter((intent) => !good.includes(intent));
  const isCredited = booked.creditedMicros > 0;
  // With the tax, as Stripe has it.
  const ledgerMicros = asMicros(isCredited ? booked.creditedMicros + booked.taxMicros : 0);
  const creditedId = creditedPaymentOf(booked);
  const [first] = good;
  const own = good.find(({ id }) => id === creditedId) ?? first;
  const more = keptOf(good.filter((intent) => intent !== own));
  // Reversals of its own payment are compared separately, so it counts in full.
  const ownMicros = microsOfCents(own?.amount_received ?? 0);
  const paidMicros = asMicros(ownMicros + more);
  return [
    ...differing('payment_mismatch', keptOf(other), 0),
    ...(more > 0
      ? [{ kind: 'paid_twice', processorMicros: paidMicros, ledgerMicros } as const]
      : []),
    ...(first && !isCredited ? differing('not_credited', ownMicros, 0) : []),
    ...(!first && isCredited ? differing('not_paid', 0, ledgerMicros) : []),
  ];
}

/** The id of the payment that the top-up was credited for; null if it is not credited, or the row names no payment. */
export function creditedPaymentOf({ creditedMicros, paymentIntentId }: Booked): string | null {
  return creditedMicros > 0 ? paymentIntentId : null;
}

/** Compares the reversals of a top-up that was credited for a payment. */
function compareReversals(
  { paymentIntentId, creditedMicros }: Booked,
  allRecorded: readonly Claim[],
  allShown: readonly Claim[],
): readonly Found[] {
  if (paymentIntentId === null || creditedMicros === 0) return [];
  const dismissed = new Set(
    allRecorded.filter(({ isDismissed }) => isDismissed).map(({ processorId }) => processorId),
  );
  const counts = ({ processorId }: Claim) => !dismissed.has(processorId);
  const recorded = allRecorded.filter(counts);
  const shown = allShown.filter(counts);
  const isSame =
    recorded.length === shown.length &&
    shown.every((claim) => recorded.some((other) => isSameClaim(claim, other)));
  if (isSame) return [];
  return [{ kind: 'reversals', processorMicros: sumOf(shown), ledgerMicros: sumOf(recorded) }];
}

/** The amount that a refund, dispute or fraud warning takes or holds; undefined if it takes nothing. */
export function claimOf(topUpId: string, reported: ReportedReversal): Claim | undefined {
  const { processorId, status, grossMicros } = reported;
  if (CLAIMS[status] === 'nothing') return undefined;
  return { topUpId, processorId, status, grossMicros, isDismissed: false };
}

/** Two undefined claims are the same: neither takes anything. */
export function isSameClaim(one: Claim | undefined, other: Claim | undefined): boolean {
  return (
    one?.processorId === other?.processorId &&
    one?.status === other?.status &&
    one?.grossMicros === other?.grossMicros
  );
}

export function isPaymentOf(
  intent: IntentFields,
  { topUpId, amountMicros, isTaxed, taxMicros }: Omit<Booked, 'paymentIntentId' | 'creditedMicros'>,
): boolean {
  try {
    return (
      verdictOfIntent(intent, { id: topUpId, amountMicros, isTaxed, taxMicros }).kind === 'paid'
    );
  } catch (error) {
    if (error instanceof PaymentMismatchError) return false;
    throw error;
  }
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

/**
 * Returns a function for the part of payments that was neither refunded nor lost to disputes. An open dispute leaves
 * open whether the money is kept. It counts as lost once an operator has settled the difference, because the operator
 * may have credited the money. A dispute may include what was refunded.
 */
function keptFor({ disputes, settled }: BothSides): (payments: readonly IntentFields[]) => Micros {
  const lostCents = ({ id }: IntentFields) =>
    (disputes.get(id) ?? [])
      .filter(({ status }) => status === 'lost' || settled.length > 0)
      .reduce((sum, { cents }) => sum + cents, 0);
  return (payments) =>
    microsOfCents(
      payments
        .map((intent) => Math.max(0, keptCentsOf(intent) - lostCents(intent)))
        .reduce((sum, cents) => sum + cents, 0),
    );
}

function sumOf(claims: readonly Claim[]): Micros {
  return asMicros(claims.reduce((sum, { grossMicros }) => sum + grossMicros, 0));
}
