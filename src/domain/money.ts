/**
 * Money inside Farebox: micro-dollars ($0.000001) as a branded safe integer. The API uses dollars: a JSON number, or in
 * requests also a decimal string (specification, conventions). Nothing is ever rounded: an amount with a fraction of a
 * micro-dollar is refused.
 */
declare const micros: unique symbol;
declare const dollars: unique symbol;

/** Micro-dollars: a safe integer. */
export type Micros = number & { readonly [micros]: true };

/** Dollars in a reply. Their brand keeps micro-dollars, a million times too large, out of it. */
export type Dollars = number & { readonly [dollars]: true };

export const MICROS_PER_DOLLAR = 1_000_000;
export const MICROS_PER_CENT = 10_000;

/** A charge or price: at most $1,000,000. */
export const CHARGE_MICROS_MAX = asMicros(1_000_000 * MICROS_PER_DOLLAR);
/** A manual credit or adjustment: at most $10,000,000 at a time. */
export const MANUAL_MICROS_MAX = asMicros(10_000_000 * MICROS_PER_DOLLAR);

/** The largest amount that can be counted exactly, as text: 2^53 - 1 micro-dollars. */
export const LARGEST_AMOUNT = '$9,007,199,254.740991';

/** Brands an integer that is already in micro-dollars: a database column, a sum of micros. */
export function asMicros(value: number): Micros {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer of micros: ${value}`);
  return value as Micros;
}

/**
 * Dollars to micros, or `undefined` when no amount in micros prints as exactly this number: 0.1 and 0.000001 are exact,
 * 1e-7 and 1e309 are not. A string is a plain decimal of at most six places: "0.20".
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
  // Converts all digits at once, without a fraction in between. Adding 0 turns -0 into 0.
  const value = Number(whole + fraction.padEnd(6, '0')) + 0;
  return Number.isSafeInteger(value) ? (value as Micros) : undefined;
}

export function isChargeable(amount: Micros): boolean {
  return amount > 0 && amount <= CHARGE_MICROS_MAX;
}

/** Micros to dollars. Up to $4,294,967,296, `microsOfDollars` turns the number back into the same micros. */
export function dollarsOf(value: Micros): Dollars {
  return (value / MICROS_PER_DOLLAR) as Dollars;
}

/**
 * For texts: `$1,000.00`, with the decimals beyond cents only when there are any: `$0.0215`. A sum of many
 * accounts, which may be more than the largest safe integer, is a bigint.
 */
export function formatDollars(value: Micros | bigint): string {
  const [dollars = '', decimals = ''] = decimalOf(value).replace('-', '').split('.');
  const shown = decimals.slice(0, 2) + decimals.slice(2).replace(/0+$/, '');
  const grouped = dollars.replace(/\B(?=(\d{3})+$)/g, ',');
  return `${value < 0 ? '-' : ''}$${grouped}.${shown}`;
}

/** The same for a number of dollars, as workflows have it. */
export function formatDollarNumber(dollars: number): string {
  return formatDollars(asMicros(Math.round(dollars * MICROS_PER_DOLLAR)));
}

/** Dollars as text with six decimals, without an exponent and without a float in between. */
export function decimalOf(value: Micros | bigint): string {
  const digits = String(value).replace('-', '').padStart(7, '0');
  return `${value < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

export function isWholeCents(value: Micros): boolean {
  return value % MICROS_PER_CENT === 0;
}

/** The cents of an amount in whole cents. */
export function centsOf(value: Micros): number {
  if (!isWholeCents(value)) throw new RangeError(`${value} micros are not whole cents`);
  return value / MICROS_PER_CENT;
}

export function microsOfCents(cents: number): Micros {
  return asMicros(cents * MICROS_PER_CENT);
}
