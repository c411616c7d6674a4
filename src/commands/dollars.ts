/** Parses dollar amounts on the command line. */
import { InvalidArgumentError } from 'commander';
import {
  asMicros,
  isWholeCents,
  MANUAL_MICROS_MAX,
  microsOfDollars,
  type Micros,
} from '../domain/money.ts';
import { TOP_UP_MICROS_MAX, TOP_UP_MICROS_MIN } from '../domain/top-up.ts';

export const parseDollars = upTo(MANUAL_MICROS_MAX, '$10,000,000');

/** A limit of the saved card, which the API and the console accept too. */
export const parseCardLimit = upTo(TOP_UP_MICROS_MAX, '$999,999.99');

function upTo(max: Micros, maxText: string) {
  return (text: string): Micros => {
    const micros = microsOfDollars(text);
    if (micros !== undefined && micros >= 0 && micros <= max) return micros;
    throw new InvalidArgumentError(`It must be from $0 to ${maxText}, with at most six decimals.`);
  };
}

/** The same, but not $0. */
export const parsePositiveDollars = positive(parseDollars);
export const parsePositiveCardLimit = positive(parseCardLimit);

function positive(parse: (text: string) => Micros) {
  return (text: string): Micros => {
    const micros = parse(text);
    if (micros > 0) return micros;
    throw new InvalidArgumentError('It must be more than $0.');
  };
}

/** A credit, or a debit with a minus sign. */
export function parseSignedDollars(text: string): Micros {
  const [, minus, digits = ''] = /^(-?)(.*)$/.exec(text) ?? [];
  const micros = microsOfDollars(digits);
  if (micros !== undefined && micros > 0 && micros <= MANUAL_MICROS_MAX) {
    return asMicros((minus ? -1 : 1) * micros);
  }
  throw new InvalidArgumentError(
    'It must be an amount such as 5 or -2.50, at most $10,000,000, with at most six decimals, and not 0.',
  );
}

/** An amount that the processor can charge to a card. */
export function parseCardDollars(text: string): Micros {
  const micros = parseDollars(text);
  const isPayable = micros >= TOP_UP_MICROS_MIN && micros <= TOP_UP_MICROS_MAX;
  if (isPayable && isWholeCents(micros)) return micros;
  throw new InvalidArgumentError('It must be whole cents, from $0.50 to $999,999.99.');
}
