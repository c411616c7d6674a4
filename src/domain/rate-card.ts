/**
 * Rate cards: prices by the unit, such as a token, finer than a micro-dollar. The cost of a call is an exact sum of
 * products, rounded once to the micro-dollar.
 */
import { CHARGE_MICROS_MAX, type Micros } from './money.ts';

/** A card of a tool. Its version, from 1, is unique among the cards of the tool. */
export interface RateCard {
  readonly version: number;
  /** The price of each unit, in picodollars: millionths of a micro-dollar. */
  readonly picosOf: ReadonlyMap<string, bigint>;
}

/** How many of each unit a call used: integers from 0 to `UNITS_MAX`. */
export type Units = Readonly<Record<string, number>>;

export const CARD_UNITS_MAX = 20;
export const UNITS_MAX = 1_000_000_000_000;
/** $1,000: up to it, a number of dollars tells all prices of twelve decimals apart. */
const UNIT_PICOS_MAX = 10n ** 15n;
const PICO_DECIMALS = 12;
const PICOS_PER_MICRO = 1_000_000n;

/**
 * The price of a unit in picodollars; `undefined` unless it is an exact amount from $0 to $1,000 with at most twelve
 * decimals. A string is a plain decimal: "0.0000025". A number may have an exponent: 2.5e-6.
 */
export function picosOfDollars(dollars: number | string): bigint | undefined {
  const form =
    typeof dollars === 'number'
      ? /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/
      : /^(\d{1,16})(?:\.(\d{1,12}))?$/;
  const [, whole, fraction = '', exponent = '0'] = form.exec(String(dollars)) ?? [];
  if (whole === undefined) return undefined;
  const zeros = PICO_DECIMALS - fraction.length + Number(exponent);
  if (zeros < 0 || zeros > 2 * PICO_DECIMALS) return undefined;
  const picos = BigInt(whole + fraction + '0'.repeat(zeros));
  return picos <= UNIT_PICOS_MAX ? picos : undefined;
}

/** Dollars, such as 0.0000025. `picosOfDollars` turns the number back into the same price. */
export function dollarsOfPicos(picos: bigint): number {
  return Number(picos) / 10 ** PICO_DECIMALS;
}

/**
 * What the units cost: rounded once, half to even, and at least one micro-dollar unless they cost nothing. `unit` is
 * one that the card does not price. `undefined`: more than can be charged.
 */
export function costOf(
  card: RateCard,
  units: Units,
): Micros | { readonly unit: string } | undefined {
  let picos = 0n;
  for (const [unit, count] of Object.entries(units)) {
    const price = card.picosOf.get(unit);
    if (price === undefined) return { unit };
    picos += price * BigInt(count);
  }
  const micros = roundToMicros(picos);
  return micros > BigInt(CHARGE_MICROS_MAX) ? undefined : (Number(micros) as Micros);
}

function roundToMicros(picos: bigint): bigint {
  const whole = picos / PICOS_PER_MICRO;
  const twice = (picos % PICOS_PER_MICRO) * 2n;
  const isUp = twice > PICOS_PER_MICRO || (twice === PICOS_PER_MICRO && whole % 2n === 1n);
  const rounded = isUp ? whole + 1n : whole;
  return rounded === 0n && picos > 0n ? 1n : rounded;
}
