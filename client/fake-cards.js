/** Rate cards of a FakeFarebox: prices by the unit, exact to a millionth of a micro-dollar, and what units cost. */
import { malformed, refuse } from './fake-refusal.js';
import { now } from './fake-values.js';

const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/;
const CARD_UNITS_MAX = 20;
const COUNT_MAX = 1_000_000_000_000;
const PICOS_MAX = 10n ** 15n;
const PICO_PLACES = 12;
const PICOS_PER_MICRO = 1_000_000n;
const COST_MICROS_MAX = 1_000_000_000_000n;

/** The units of a call. */
export function checkUnits(units) {
  if (units === undefined) return;
  checkNames('units', units);
  for (const [unit, count] of Object.entries(units)) {
    if (Number.isInteger(count) && count >= 0 && count <= COUNT_MAX) continue;
    malformed(`units.${unit}`, `must be a whole number from 0 to ${COUNT_MAX}`);
  }
}

/** A card as it is sent. `pricesOf` checks its prices. */
export function checkCard(card) {
  if ((card ?? null) === null) return;
  checkNames('card', card);
  for (const [unit, price] of Object.entries(card)) {
    if (!/^(number|string)$/.test(typeof price))
      malformed(`card.${unit}`, 'must be a number or text');
  }
}

function checkNames(param, value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    malformed(param, 'must be an object');
  }
  const names = Object.keys(value);
  const isNamed = names.every((name) => NAME.test(name));
  if (isNamed && names.length >= 1 && names.length <= CARD_UNITS_MAX) return;
  malformed(param, `must have 1 to ${CARD_UNITS_MAX} units, with names such as output.cached`);
}

/** The price of each unit in picodollars. Null: no card. */
export function pricesOf(card) {
  if ((card ?? null) === null) return null;
  return new Map(
    Object.entries(card)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([unit, dollars]) => [unit, picosOf(`card.${unit}`, dollars)]),
  );
}

function picosOf(param, dollars) {
  const form =
    typeof dollars === 'number'
      ? /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/
      : /^(\d{1,16})(?:\.(\d{1,12}))?$/;
  const [, whole, fraction = '', exponent = '0'] = form.exec(String(dollars)) ?? [];
  const zeros = PICO_PLACES - fraction.length + Number(exponent);
  if (whole !== undefined && zeros >= 0 && zeros <= 2 * PICO_PLACES) {
    const picos = BigInt(whole + fraction + '0'.repeat(zeros));
    if (picos <= PICOS_MAX) return picos;
  }
  const message = `${param} is ${JSON.stringify(dollars)}. It must be from $0 to $1,000, with at most twelve decimals.`;
  return refuse('invalid_amount', message, param);
}

/** Gives the tool the card: a new version, unless it has the same one already. */
export function setCard(tool, prices) {
  if (prices === null) {
    tool.card = null;
    return;
  }
  const same = JSON.stringify([...prices].map(String));
  if (tool.card?.same === same) return;
  tool.card = { version: tool.cards.length + 1, prices, same, createdAt: now() };
  tool.cards.push(tool.card);
}

export function wireCard({ card }) {
  return card === null ? {} : wirePrices(card);
}

/** A card that the tool has or had. */
export function cardOf({ cards }, version) {
  const card = cards.find((each) => String(each.version) === version);
  if (!card) refuse('not_found', 'There is no such rate card.');
  return { ...wirePrices(card), createdAt: card.createdAt };
}

function wirePrices(card) {
  const prices = [...card.prices].map(([unit, picos]) => [unit, Number(picos) / 10 ** PICO_PLACES]);
  return { card: Object.fromEntries(prices), cardVersion: card.version };
}

/** Micro-dollars: rounded once, half to even, and at least one unless the units cost nothing. */
export function costOf(tool, units) {
  if (!tool) refuse('unknown_tool', 'The tool is not registered: send an amount.', 'tool');
  if (tool.archived) refuse('tool_archived', 'The tool is archived: send an amount.', 'tool');
  return costBy(tool.card, units);
}

function costBy(card, units) {
  if (!card) {
    refuse('invalid_request', 'The tool has no rate card: send an amount.', 'units');
  }
  let picos = 0n;
  for (const [unit, count] of Object.entries(units)) {
    if (!card.prices.has(unit)) malformed(`units.${unit}`, 'is not on the rate card of the tool');
    picos += card.prices.get(unit) * BigInt(count);
  }
  const micros = rounded(picos);
  if (micros > COST_MICROS_MAX) {
    refuse('invalid_amount', 'The units cost more than $1,000,000.', 'units');
  }
  return { micros: Number(micros), card };
}

/** The same of units that are charged, which cannot be free. */
export function chargeableCostOf(tool, units) {
  return chargeable(costOf(tool, units));
}

/** The same by the card that priced the hold of a capture. */
export function chargeableCostBy(card, units) {
  return chargeable(costBy(card, units));
}

function chargeable(cost) {
  if (cost.micros > 0) return cost;
  return refuse('invalid_amount', 'The units cost nothing.', 'units', { required: 0 });
}

function rounded(picos) {
  const whole = picos / PICOS_PER_MICRO;
  const twice = 2n * (picos % PICOS_PER_MICRO);
  const isUp = twice > PICOS_PER_MICRO || (twice === PICOS_PER_MICRO && whole % 2n === 1n);
  const micros = isUp ? whole + 1n : whole;
  return micros === 0n && picos > 0n ? 1n : micros;
}
