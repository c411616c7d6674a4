/** Amounts, ids, keys and times of a FakeFarebox. */
import { refuse } from './fake-refusal.js';
import { exactMicrosOf, formatDollarNumber } from './money.js';

const CHARGE_MICROS_MAX = 1_000_000_000_000;
const MICROS_PER_DOLLAR = 1_000_000;
/** Up to nanoseconds. */
const ISO = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3}(?<finer>\d{0,6}))?)?(Z|[+-]\d\d:\d\d))?$/;
/** Parameters that may be $0. */
const FROM_ZERO = new Set(['balance', 'limit', 'window.limit']);

/** Whole micro-dollars of a number or a decimal string. */
export function microsOf(param, dollars, max = CHARGE_MICROS_MAX) {
  const micros = findMicros(param, dollars, max);
  if (micros !== undefined) return micros;
  const message = `${param} is ${JSON.stringify(dollars)}. It must be more than $0, with at most six decimals.`;
  return refuse('invalid_amount', message, param);
}

/** Undefined for what is refused. */
export function findMicros(param, dollars, max = CHARGE_MICROS_MAX) {
  const micros = exactMicrosOf(dollars);
  const isAllowed = FROM_ZERO.has(param)
    ? micros >= 0 && micros <= Number.MAX_SAFE_INTEGER
    : micros > 0 && micros <= max;
  return isAllowed ? micros : undefined;
}

export function formatDollars(micros) {
  return formatDollarNumber(micros / MICROS_PER_DOLLAR);
}

/** What an idempotency key names of an amount, units and metadata: their form and order do not count. */
export function comparable({ amount, units, metadata }) {
  const sent = amount === undefined ? null : Number(amount);
  return { sent, members: sorted(metadata), units: sorted(units) };
}

function sorted(members) {
  return members && Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** What counts in sums: a charge, and each of its refunds when it was made. */
export function entriesOf({ micros, createdAt, refunds }) {
  return [
    { micros, createdAt, charges: 1 },
    ...refunds.map((refund) => ({ ...refund, charges: 0 })),
  ];
}

/** A tool that was only charged by its name. */
export function newTool(name) {
  const facts = { description: '', micros: null, archived: false, isRegistered: false };
  return { id: newId('tool'), name, createdAt: now(), ...facts, card: null, cards: [] };
}

export function newId(prefix) {
  return `${prefix}_${randomHex()}`;
}

export function newKey() {
  return `fare_ck_test_${randomHex().padEnd(38, 'x')}`;
}

function randomHex() {
  return crypto.randomUUID().replaceAll('-', '');
}

export function now() {
  return new Date().toISOString();
}

/** A day, or a time with its zone, in milliseconds, rounded up as in the service; NaN for anything else. */
export function parseTime(text) {
  const day = String(text).slice(0, 10);
  const match = ISO.exec(text);
  const beginsMs = match ? Date.parse(day) : Number.NaN;
  // JavaScript parses February 31 as March 3.
  const isDay = beginsMs >= 0 && new Date(beginsMs).toISOString().startsWith(day);
  if (!isDay) return Number.NaN;
  return Date.parse(text) + (/[1-9]/.test(match.groups.finer) ? 1 : 0);
}

/** As the service writes a time that was sent, or null. */
export function wireTime(text) {
  return text === null ? null : new Date(parseTime(text)).toISOString();
}
