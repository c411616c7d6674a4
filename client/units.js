/** Prices by the unit, as they are sent: how many of each unit a call used, and the rate card of a tool. */
import { createError } from './errors.js';
import { shown, unitPriceToSend } from './money.js';

/**
 * Refuses what JSON cannot carry: a count that is left out would not be charged. The service checks the names and the
 * bounds.
 */
export function unitsToSend(units, param = 'units') {
  for (const [name, count] of membersOf(units)) {
    if (Number.isFinite(count)) continue;
    const message = `${param}.${name} is ${shown(count)}. It must be a whole number from 0 to 1,000,000,000,000.`;
    throw createError('invalid_request', message, { param: `${param}.${name}` });
  }
  return units;
}

/** Prices as numbers or decimal strings. Null removes the card. */
export function cardToSend(card) {
  if (typeof card !== 'object' || card === null) return card;
  return Object.fromEntries(
    Object.entries(card).map(([unit, price]) => [unit, unitPriceToSend(price, `card.${unit}`)]),
  );
}

/** Whether all counts are 0. Throws for what cannot be sent or counts nothing. */
export function isNoUnits(units) {
  const members = membersOf(unitsToSend(units));
  if (members.length === 0) {
    throw createError('invalid_request', 'units must have at least one unit.', { param: 'units' });
  }
  return members.every(([, count]) => count === 0);
}

function membersOf(units) {
  return typeof units === 'object' && units !== null ? Object.entries(units) : [];
}
