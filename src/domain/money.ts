/**
 * Money inside Farebox: micro-dollars (1e-6 dollars) as a branded safe integer.
 * On the wire it is dollars: a JSON number, or in requests also a decimal string (specification,
 * conventions). Nothing is ever rounded: what no whole micro-dollar represents exactly is refused.
 */
declare const micros: unique symbol;

/** Micro-dollars: a safe integer. */
export type Micros = number & { readonly [micros]: true };

export const MICROS_PER_DOLLAR = 1_000_000;
export const MICROS_PER_CENT = 10_000;

/** One charge or price: at most 1,000,000 dollars. */
export const CHARGE_MICROS_MAX = 1_000_000 * MICROS_PER_DOLLAR;
/** A top-up through the processor: Stripe takes 0.50 to 999,999.99 dollars. */
export const TOP_UP_MICROS_MIN = 500_000;
export const TOP_UP_MICROS_MAX = 999_999_990_000;
/** Specification section 8: the minimum of a top-up through the hosted checkout. */
export const CHECKOUT_MICROS_MIN = 5 * MICROS_PER_DOLLAR;
/** Money booked by hand: at most 10,000,000 dollars at a time. */
export const MANUAL_MICROS_MAX = 10_000_000 * MICROS_PER_DOLLAR;

/** An integer that is known to be micro-dollars: a database row, a sum of micros. */
export function asMicros(value: number): Micros {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer of micros: ${value}`);
  return value as Micros;
}

/**
 * Dollars to micros, or `undefined` when there is no micro-dollar amount that prints as this very number: 0.1
 * and 0.000001 are exact, 1e-7 and 1e309 are not. A string is a plain decimal of at most six places: "0.20".
 */
export function microsOfDollars(dollars: number | string): Micros | undefined {
  if (typeof dollars === 'string') return microsOfDecimal(dollars);
  const value = Math.round(dollars * MICROS_PER_DOLLAR);
  return Number.isSafeInteger(value) && value / MICROS_PER_DOLLAR === dollars
    ? (value as Micros)
    : undefined;
}

function microsOfDecimal(text: string): Micros | undefined {
  const [, whole, fraction = ''] = /^(-?\d{1,16})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  // All digits at once, so that no float comes between; and no -0.
  const value = Number(whole + fraction.padEnd(6, '0')) + 0;
  return Number.isSafeInteger(value) ? (value as Micros) : undefined;
}

export function isChargeable(amount: Micros): boolean {
  return amount > 0 && amount <= CHARGE_MICROS_MAX;
}

/** Micros to dollars, the number that `microsOfDollars` turns back into the same micros. */
export function dollarsOf(value: Micros): number {
  return value / MICROS_PER_DOLLAR;
}

/** Dollars as text, to all six decimals: no exponent, and no float on the way. */
export function decimalOf(value: Micros): string {
  const digits = String(Math.abs(value)).padStart(7, '0');
  return `${value < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Whole cents of an amount, or `undefined` when it has a fraction of a cent. */
export function centsOf(value: Micros): number | undefined {
  return value % MICROS_PER_CENT === 0 ? value / MICROS_PER_CENT : undefined;
}

export function microsOfCents(cents: number): Micros {
  return asMicros(cents * MICROS_PER_CENT);
}
