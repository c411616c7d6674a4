/**
 * Money in exact fractions, for prices by unit. An amount to be sent has whole micro-dollars, so fractions are rounded
 * once, at the end, in a named direction.
 */
import { createError } from './errors.js';

/** Includes the exponents with which numbers print: 2e-7. */
const DECIMAL = /^(\d{1,40})(?:\.(\d{1,40}))?(?:e([+-]\d{1,3}))?$/;
/** Without exponents: what the service accepts. */
const SENDABLE = /^\d{1,16}(?:\.\d{1,6})?$/;
const MICROS_PER_DOLLAR = 1_000_000n;
/** What a developer's function returned may be a whole result. */
const SHOWN_CHARS_MAX = 100;
const IN_TEXTS = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  maximumFractionDigits: 6,
});

/** Dollars: a decimal string, or a number, which means the decimal that it prints as. */
export function usd(dollars) {
  if (dollars instanceof Usd) return dollars;
  const { numerator, denominator } = fractionOf(dollars);
  return new Usd(numerator * MICROS_PER_DOLLAR, denominator);
}

/** Decimal places of a price by the unit, on a rate card. */
const UNIT_PRICE_PLACES = 12;
let decimalOf;

class Usd {
  static {
    decimalOf = (usd, places) => usd.#decimal(places);
  }

  /** Micro-dollars are `#numerator / #denominator`; the denominator is above zero. */
  #numerator;
  #denominator;

  constructor(numerator, denominator) {
    this.#numerator = numerator;
    this.#denominator = denominator;
  }

  times(quantity) {
    const { numerator, denominator } = fractionOf(quantity);
    return new Usd(this.#numerator * numerator, this.#denominator * denominator);
  }

  per(quantity) {
    const { numerator, denominator } = fractionOf(quantity);
    if (numerator === 0n) throw new RangeError('Farebox: a price is per more than 0 units');
    return new Usd(this.#numerator * denominator, this.#denominator * numerator);
  }

  plus(amount) {
    const other = usd(amount);
    return new Usd(
      this.#numerator * other.#denominator + other.#numerator * this.#denominator,
      this.#denominator * other.#denominator,
    );
  }

  /** Rounds to whole micro-dollars: `up`, `down`, or `half_even`, to the nearest with ties to even. */
  round(rounding) {
    const down = this.#numerator / this.#denominator;
    const twice = 2n * (this.#numerator % this.#denominator);
    const isHalfUp = twice > this.#denominator || (twice === this.#denominator && down % 2n === 1n);
    const isUp = { up: twice > 0n, down: false, half_even: isHalfUp }[rounding];
    if (isUp === undefined) {
      throw new TypeError("Farebox: round() takes 'up', 'down' or 'half_even'");
    }
    return new Usd(isUp ? down + 1n : down, 1n);
  }

  /** A decimal of six places. Throws a RangeError when a fraction of a micro-dollar is left. */
  toString() {
    const decimal = this.#decimal(6);
    if (decimal !== undefined) return decimal;
    throw new RangeError(
      "Farebox: the amount has more than six decimals: end it with .round('up'), 'down' or 'half_even'",
    );
  }

  /** Undefined when it has more decimals. */
  #decimal(places) {
    const scaled = this.#numerator * 10n ** BigInt(places);
    const scale = this.#denominator * MICROS_PER_DOLLAR;
    if (scaled % scale !== 0n) return undefined;
    const digits = String(scaled / scale).padStart(places + 1, '0');
    return `${digits.slice(0, -places)}.${digits.slice(-places)}`;
  }

  /** So that it is an amount in JSON. */
  toJSON() {
    return this.toString();
  }
}

/** Prepares an amount for sending and refuses what JSON cannot carry. The service checks the bounds. */
export function amountToSend(amount, param = 'amount') {
  if (amount === undefined || Number.isFinite(amount) || typeof amount === 'string') return amount;
  if (amount instanceof Usd) {
    try {
      return amount.toString();
    } catch (error) {
      throw createError('invalid_amount', error.message, { param }, error);
    }
  }
  const message = `${param} is ${shown(amount)}. It must be a number of dollars, a decimal string or usd().`;
  throw createError('invalid_amount', message, { param });
}

/** The same for the price of a unit, which `usd()` may divide down to twelve decimals. */
export function unitPriceToSend(price, param) {
  if (Number.isFinite(price) || typeof price === 'string') return price;
  const decimal = price instanceof Usd ? decimalOf(price, UNIT_PRICE_PLACES) : undefined;
  if (decimal !== undefined) return decimal;
  const given = price instanceof Usd ? 'a price with more than twelve decimals' : shown(price);
  const message = `${param} is ${given}. It must be a number of dollars, a decimal string or usd(), with at most twelve decimals.`;
  throw createError('invalid_amount', message, { param });
}

/** As the service writes amounts: `$1,000.00`, and `$0.0215` where there is less than a cent. */
export function formatDollarNumber(dollars) {
  return IN_TEXTS.format(dollars);
}

/** Whole micro-dollars of a number or text that is sent; NaN for what the service refuses to read or to round. */
export function exactMicrosOf(dollars) {
  const scale = Number(MICROS_PER_DOLLAR);
  const micros = Math.round(Number(dollars) * scale);
  const isExact = typeof dollars === 'string' ? SENDABLE.test(dollars) : micros / scale === dollars;
  return isExact ? micros : Number.NaN;
}

/** The beginning of a value, for a message. */
export function shown(value) {
  const text = String(value);
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}...` : text;
}

/** Prices and quantities are never negative. */
function fractionOf(value) {
  const isNumeric = ['number', 'string', 'bigint'].includes(typeof value);
  const [, whole, fraction = '', exponent = '0'] = (isNumeric && DECIMAL.exec(String(value))) || [];
  if (whole === undefined) {
    throw new RangeError(`Farebox: ${shown(value)} is not a decimal number of 0 or more`);
  }
  const digits = BigInt(whole + fraction);
  const places = BigInt(fraction.length - Number(exponent));
  return places > 0n
    ? { numerator: digits, denominator: 10n ** places }
    : { numerator: digits * 10n ** -places, denominator: 1n };
}
