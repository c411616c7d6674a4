/** Dollars: as the client takes them, and exact arithmetic on them. */

/** Dollars: a number, a decimal string such as `'0.02'`, or what `usd()` made and rounded. */
export type Amount = number | string | Usd;

/** How `Usd.round` gets to whole micro-dollars: `half_even` is to the nearest, and of two to the even one. */
export type Rounding = 'up' | 'down' | 'half_even';

/** Dollars in exact fractions: for prices by unit. Each method gives a new one. */
export interface Usd {
  /** So much for each of `quantity` units. */
  times(quantity: number | string | bigint): Usd;
  /** The price of one unit, when this is the price of `quantity` of them. */
  per(quantity: number | string | bigint): Usd;
  plus(amount: Amount): Usd;
  /** To whole micro-dollars, once, at the end. */
  round(rounding: Rounding): Usd;
  /** A decimal of six places. Throws a RangeError when there is a fraction of a micro-dollar: round first. */
  toString(): string;
  toJSON(): string;
}

/**
 * Money for arithmetic, without the errors of floats: `3 * 0.07` is 0.21000000000000002, which cannot be charged.
 * A number is taken as the decimal that it prints as. Throws a RangeError for what is no decimal of 0 or more.
 *
 * @example
 * const amount = usd('3').per(1_000_000).times(tokens).round('up'); // $3.00 per million tokens
 */
export declare function usd(dollars: Amount): Usd;
