/**
 * Compares Stripe and the ledger for one top-up. Pure, and the only such comparison: reconciliation records the
 * differences, doctor prints them.
 */
import { asMicros, microsOfCents, type Micros } from '../domain/money.ts';
import { CLAIMS } from '../domain/reversal.ts';
import type { Booked, Claim, Difference } from '../store/top-ups/reconciliation.ts';
import type { ReportedReversal } from '../store/top-ups/reversals.ts';
import {
  keptCentsOf,
  PaymentMismatchError,
  verdictOfIntent,
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
}

export function compareTopUp({ booked, intents, recorded, shown }: BothSides): readonly Found[] {
  const payments = intents.filter(({ status }) => status === 'succeeded');
  if (!booked) return differing('unknown_top_up', keptOf(payments), 0);
  return [...comparePayments(booked, payments), ...compareReversals(booked, recorded, shown)];
}

function comparePayments(booked: Booked, payments: readonly IntentFields[]): readonly Found[] {
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

/** The part of these payments that was not refunded. */
function keptOf(payments: readonly IntentFields[]): Micros {
  return microsOfCents(payments.reduce((sum, intent) => sum + keptCentsOf(intent), 0));
}

function sumOf(claims: readonly Claim[]): Micros {
  return asMicros(claims.reduce((sum, { grossMicros }) => sum + grossMicros, 0));
}
