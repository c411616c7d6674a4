/** Prices by the unit, as they are sent: how many of each unit a call used, and the rate card of a tool. */
import { createError } from './errors.js';
import { shown, unitPriceToSend } from './money.js';

const COUNT_MAX = 1_000_000_000_000;

/**
 * Refuses what JSON cannot carry: a count that is left out would not be charged. The service checks the names and the
 * bounds.
 */
export function unitsToSend(units, param = 'units') {
  checkCounts(units, param, Number.isFinite);
  return units;
}

function checkCounts(units, param, isCount) {
  for (const [name, count] of membersOf(units)) {
    if (isCount(count)) continue;
    const given = typeof count === 'string' ? JSON.stringify(count) : count;
    const message = `${param}.${name} is ${shown(given)}. It must be a whole number from 0 to 1,000,000,000,000.`;
    throw createError('invalid_request', message, { param: `${param}.${name}` });
  }
}

/** Prices as numbers or decimal strings. Null removes the card. */
export function cardToSend(card) {
  if (typeof card !== 'object' || card === null) return card;
  return Object.fromEntries(
    Object.entries(card).map(([unit, price]) => [unit, unitPriceToSend(price, `card.${unit}`)]),
  );
}

/** Whether all counts are 0. Throws for what cannot be charged or counts nothing. */
export function isNoUnits(units) {
  checkCounts(units, 'units', isWholeCount);
  const members = membersOf(units);
  if (members.length === 0) {
    throw createError('invalid_request', 'units must have at least one unit.', { param: 'units' });
  }
  return members.every(([, count]) => count === 0);
}

function isWholeCount(count) {
  return Number.isInteger(count) && count >= 0 && count <= COUNT_MAX;
}

function membersOf(units) {
  return typeof units === 'object' && units !== null ? Object.entries(units) : [];
}
