/** Amounts in dollars, and exact arithmetic on them. */

/** Dollars: a number, a decimal string such as `'0.02'`, or a rounded result of `usd()`. */
export type Amount = number | string | Usd;

/** How `Usd.round` rounds to whole micro-dollars. `half_even` rounds to the nearest, and ties to even. */
export type Rounding = 'up' | 'down' | 'half_even';

/** Dollars as an exact fraction, for prices by unit. Each method returns a new value. */
export interface Usd {
  /** The price of `quantity` units. */
  times(quantity: number | string | bigint): Usd;
  /** The price of one unit, when this is the price of `quantity` of them. */
  per(quantity: number | string | bigint): Usd;
  plus(amount: Amount): Usd;
  /** Rounds to whole micro-dollars. Call it once, at the end. */
  round(rounding: Rounding): Usd;
  /** A decimal of six places. Throws a RangeError when a fraction of a micro-dollar is left: round first. */
  toString(): string;
  toJSON(): string;
}

/**
 * Money for arithmetic, without the errors of floats: `3 * 0.07` is 0.21000000000000002, which cannot be charged. A
 * number means the decimal that it prints as. Throws a RangeError for anything but a decimal of 0 or more.
 *
 * @example const amount = usd('3').per(1_000_000).times(tokens).round('up'); // $3.00 per million tokens
 */
export declare function usd(dollars: Amount): Usd;
