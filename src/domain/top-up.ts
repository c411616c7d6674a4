/** Top-ups: their states, methods, limits, and the state of automatic ones. */
import { wireId } from './ids.ts';
import { asMicros, formatDollars, type Micros } from './money.ts';

export const TOP_UP_STATUSES = [
  'pending',
  'completed',
  'expired',
  'failed',
  'partially_refunded',
  'refunded',
  'disputed',
  'charged_back',
] as const;

export type TopUpStatus = (typeof TOP_UP_STATUSES)[number];

/** A top-up that is not credited yet may still be paid, even if it has expired or failed. */
export function isCredited(status: TopUpStatus): boolean {
  return status !== 'pending' && status !== 'expired' && status !== 'failed';
}

/**
 * The source of the money: the hosted checkout, the saved card, an operator (`account create --balance`), or
 * nobody: play money of a test account.
 */
export const TOP_UP_METHODS = ['checkout', 'direct', 'manual', 'test'] as const;
export type TopUpMethod = (typeof TOP_UP_METHODS)[number];

/** Why a top-up failed: the code is one of the error codes, the message is for the consumer. */
export interface TopUpFailure {
  readonly code: string;
  readonly message: string;
}

/** Why a top-up from the saved card failed. */
export type CardFailureCode =
  | 'card_declined'
  | 'card_expired'
  | 'authentication_required'
  | 'invalid_amount'
  | 'tax_address_missing'
  | 'declined_too_often'
  | 'consent_required'
  | 'consent_ceiling_reached'
  | 'no_saved_card'
  | 'payment_too_late'
  | 'payment_failed';

/** A top-up through Stripe, which accepts $0.50 to $999,999.99. */
export const TOP_UP_MICROS_MIN = asMicros(500_000);
export const TOP_UP_MICROS_MAX = asMicros(999_999_990_000);
/** With tax on: leaves room for a third on top, which is more than any country's tax. */
const TAXED_TOP_UP_MICROS_MAX = asMicros(750_000_000_000);

export function topUpMaxOf(isTaxed: boolean): Micros {
  return isTaxed ? TAXED_TOP_UP_MICROS_MAX : TOP_UP_MICROS_MAX;
}

/** The page where the cardholder confirms a direct top-up at the bank; `topUpId` is a UUID. */
export function confirmationUrl(consoleUrl: string, topUpId: string): string {
  return `${consoleUrl}/top-up/confirm?id=${wireId('topUp', topUpId)}`;
}

/** The credit and, with tax, what the payer pays: the amount that a bank shows. */
export function payableText({
  amountMicros,
  taxMicros,
}: {
  readonly amountMicros: Micros;
  readonly taxMicros: Micros;
}): string {
  const credit = formatDollars(amountMicros);
  if (taxMicros === 0) return credit;
  const total = formatDollars(asMicros(amountMicros + taxMicros));
  return `${credit}, plus ${formatDollars(taxMicros)} tax (${total} in total)`;
}

/** Open ones of one consumer: each is a payment page at Stripe and a workflow. More would not help a payer. */
export const OPEN_TOP_UPS_MAX = 100;
/** Beyond it, keys open no more, so that the holder of a key does not keep the owner from topping up. */
export const KEYS_OPEN_TOP_UPS_MAX = 80;
/** Open checkouts of one consumer that links opened, counted separately: anybody with a link opens them. */
export const OPEN_LINK_CHECKOUTS_MAX = 50;

/** How many top-ups may be open before another one is opened. */
export function openTopUpsMax(by: { readonly byLink?: boolean; readonly byKey?: boolean }): number {
  if (by.byLink) return OPEN_LINK_CHECKOUTS_MAX;
  return by.byKey ? KEYS_OPEN_TOP_UPS_MAX : OPEN_TOP_UPS_MAX;
}

/**
 * Automatic top-ups of a consumer. `waiting`: one is due but postponed. `off` with a reason: they turned themselves
 * off, for example after three failures in a row (src/store/top-ups/auto-top-ups.ts).
 */
export const AUTO_TOP_UP_STATUSES = ['on', 'waiting', 'off'] as const;

/** Why they wait without a failure. */
export type WaitReason =
  | 'consent_required'
  | 'consent_ceiling_reached'
  | 'ceiling_reached'
  | 'authentication_required';

/** Why one failed. After some failures they turn themselves off. The excluded codes are of direct top-ups alone. */
export type AutoTopUpFailureCode = Exclude<
  CardFailureCode,
  WaitReason | 'declined_too_often' | 'payment_too_late'
>;

/** Why they turned themselves off without a failure: a payment may not be the cardholder's own. */
export type SuspectReason = 'payment_disputed' | 'fraud_warning';

export interface AutoTopUpState {
  readonly status: (typeof AUTO_TOP_UP_STATUSES)[number];
  /** Why it waits or turned itself off: a `WaitReason`, an `AutoTopUpFailureCode` or a `SuspectReason`. */
  readonly reason: string | null;
}

/**
 * How long the workflow of a top-up waits for a report before it asks the processor: each time eight times as long as
 * before, so an unpaid checkout costs five questions in its day. Reconciliation finds a payment whose report was lost.
 */
export const ASK_FACTOR = 8;
export const ASK_MS_MAX = 86_400_000;
