/**
 * The share of a payment that is not tax. Each refund or dispute takes its share of what is left, and the
 * last one all of it, so that over the parts of one payment nothing is lost and nothing is taken twice.
 */
import { asMicros, MICROS_PER_CENT, type Micros } from './money.ts';

/** What a payer pays: the amount that is credited, and the tax on top of it. */
export interface Taxed {
  readonly amountMicros: Micros;
  readonly taxMicros: Micros;
}

/** The part of a payment that other refunds, or disputes, have claimed. */
export interface ClaimedShare {
  readonly netMicros: Micros;
  readonly grossMicros: Micros;
}

/** The amount without tax of a refund or dispute of `grossMicros`, rounded down to the micro-dollar. */
export function netShare(payment: Taxed, grossMicros: Micros, claimed: ClaimedShare): Micros {
  const left = leftOf(payment, claimed);
  // A bank may dispute more than was paid. What exceeds the payment has no tax.
  if (grossMicros >= left.gross) return asMicros(left.net + grossMicros - left.gross);
  return asMicros(shareOf(left.net, grossMicros, left.gross));
}

/** The amount with tax of a refund of `netMicros`; both in whole cents, and the tax rounded down. */
export function grossShare(payment: Taxed, netMicros: Micros, claimed: ClaimedShare): Micros {
  const left = leftOf(payment, claimed);
  if (netMicros >= left.net) return asMicros(left.gross + netMicros - left.net);
  const tax = shareOf(left.gross - left.net, netMicros, left.net);
  return asMicros(netMicros + tax - (tax % MICROS_PER_CENT));
}

function leftOf({ amountMicros, taxMicros }: Taxed, { netMicros, grossMicros }: ClaimedShare) {
  return {
    net: Math.max(amountMicros - netMicros, 0),
    gross: Math.max(amountMicros + taxMicros - grossMicros, 0),
  };
}

/** `whole * part / all`, rounded down. The product is beyond safe integers. */
function shareOf(whole: number, part: number, all: number): number {
  return Number((BigInt(whole) * BigInt(part)) / BigInt(all));
}
