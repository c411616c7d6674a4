/** What a FakeFarebox refuses as malformed, by the schemas of the service. */
import { checkUnits } from './fake-cards.js';
import { refuseTopUpOnDemand } from './fake-magic.js';
import { malformed, refuse } from './fake-refusal.js';
import { microsOf, parseTime } from './fake-values.js';
import { brokenRule } from './metadata.js';

const PRINTABLE = String.raw`^(?=.*[^\s\p{Default_Ignorable_Code_Point}])[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]`;
const UNITS = ['hour', 'day', 'week', 'month'];
const NAMES_MAX = 100;
const PAGE_MAX = 100;
const REASON_CHARS_MAX = 500;
const [ASK_SECONDS_MIN, ASK_SECONDS_MAX] = [60, 604_800];
const OVERLAP_SECONDS_MAX = 2_592_000;
const UNIT_MS = { hour: 3_600_000, day: 86_400_000 };
const GROUPS = ['key', 'tool', 'developer', 'day'];
const HOLD_SECONDS_MAX = 86_400;
const BATCH_MEMBERS_MAX = 1_000;
const TOP_UP_MICROS_MIN = 500_000;
const TOP_UP_MICROS_MAX = 999_999_990_000;

/** The body of a charge. */
export function checkCharge({ tool, units, metadata }) {
  checkTool('tool', tool);
  checkUnits(units);
  checkMetadata(metadata);
}

export function checkTool(param, name) {
  checkText(param, name, 100);
}

export function checkText(param, text, charsMax) {
  const rule = new RegExp(`${PRINTABLE}{1,${charsMax}}$`, 'u');
  if (typeof text === 'string' && rule.test(text)) return;
  malformed(param, `must be printable text of 1 to ${charsMax} characters, not all blank`);
}

/** The body of a hold. */
export function checkHold({ expiresIn, ...charge }) {
  checkCharge(charge);
  if (expiresIn !== undefined) checkSeconds(expiresIn);
}

export function checkSeconds(expiresIn) {
  checkNumber('expiresIn', expiresIn, 1, HOLD_SECONDS_MAX);
}

function checkNumber(param, value, min, max) {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  malformed(param, `must be a whole number from ${min} to ${max}`);
}

export function checkMetadata(metadata) {
  const broken = metadata === undefined ? undefined : brokenRule(metadata);
  if (!broken) return;
  const { rule, member } = broken;
  const param = member === undefined ? 'metadata' : `metadata.${member}`;
  refuse('invalid_request', `metadata is malformed. ${rule}`, param);
}

export function checkMembers(charges) {
  if (Array.isArray(charges) && charges.length >= 1 && charges.length <= BATCH_MEMBERS_MAX) return;
  malformed('charges', `must have 1 to ${BATCH_MEMBERS_MAX} members`);
}

/** The body of a question to the owner. */
export function checkQuestion({ tool, reason, expiresIn }) {
  checkTool('tool', tool);
  if (reason !== undefined) checkText('reason', reason, REASON_CHARS_MAX);
  if (expiresIn !== undefined) {
    checkNumber('expiresIn', expiresIn, ASK_SECONDS_MIN, ASK_SECONDS_MAX);
  }
}

/** A payer names the developer that was called, and a developer the key of the payer. */
export function checkParties({ apiKey, developerId }, isByPayer, ownId) {
  if (!isByPayer) {
    if (developerId !== undefined) malformed('developerId', 'is for consumer keys only');
    return;
  }
  if (apiKey !== undefined) malformed('apiKey', 'is for secret keys only');
  if (developerId === undefined) malformed('developerId', 'is required');
  if (developerId !== ownId) refuse('not_found', 'There is no such developer.', 'developerId');
}

/** The amount of a top-up in micro-dollars. */
export function topUpOf(amount) {
  const micros = microsOf('amount', amount);
  if (micros < TOP_UP_MICROS_MIN || micros > TOP_UP_MICROS_MAX || micros % 10_000 !== 0) {
    const message = 'amount must be in whole cents, from $0.50 to $999,999.99.';
    refuse('invalid_amount', message, 'amount');
  }
  refuseTopUpOnDemand(micros);
  return micros;
}

/** The settings of a budget, new or changed. Its amounts are checked where they are read. */
export function checkBudget({ name, window, expiresAt, metadata }) {
  if (name !== undefined) checkTool('name', name);
  if (window && !UNITS.includes(window.per)) {
    malformed('window.per', `must be one of: ${UNITS.join(', ')}`);
  }
  if (window && window.limit === undefined) malformed('window.limit', 'is missing');
  if (expiresAt !== null) checkFuture(expiresAt);
  if (metadata !== null) checkMetadata(metadata);
}

/** A list of distinct names. Where the list must not be empty, null allows all names. */
export function checkNames(param, names, [min, max] = [1, NAMES_MAX]) {
  if (names === null && min > 0) return;
  const isUnique = Array.isArray(names) && new Set(names).size === names.length;
  if (isUnique && names.length >= min && names.length <= max) return;
  malformed(param, `must have ${min} to ${max} members, each once`);
}

/** The body of a spend key. */
export function checkKey({ name, expiresAt }) {
  if (name !== undefined) checkTool('name', name);
  checkFuture(expiresAt);
}

function checkFuture(expiresAt) {
  if (expiresAt === undefined || parseTime(expiresAt) > Date.now()) return;
  malformed('expiresAt', 'must be a time in the future, in ISO 8601');
}

export function checkOverlap(seconds) {
  checkNumber('overlapSeconds', seconds, 0, OVERLAP_SECONDS_MAX);
}

export function checkPage(query) {
  if (query.has('limit'))
    checkNumber('limit', Number(query.get('limit') || Number.NaN), 1, PAGE_MAX);
  if (/^\d+$/.test(query.get('cursor') ?? '0')) return;
  refuse('invalid_cursor', 'cursor must be the nextCursor of a page.', 'cursor');
}

export function checkUsage(query) {
  if (query.has('by') && !GROUPS.includes(query.get('by'))) {
    malformed('by', `must be one of: ${GROUPS.join(', ')}`);
  }
  checkBounds(query, 'day');
}

/** Gives whether a time is in the range of the query. */
export function rangeOf(query) {
  const [fromMs, toMs] = ['from', 'to'].map((name) => timeOf(name, query.get(name)));
  if (fromMs > toMs) refuse('invalid_request', 'from must not be after to.', 'from');
  return (time) => !(Date.parse(time) < fromMs || Date.parse(time) >= toMs);
}

/** Sums are stored by hour or by day. */
export function checkBounds(query, unit) {
  for (const name of ['from', 'to']) {
    if (timeOf(name, query.get(name)) % UNIT_MS[unit] > 0)
      malformed(name, `must be the beginning of a UTC ${unit}`);
  }
  if (query.has('from') && query.get('from') === query.get('to'))
    malformed('from', 'must be before to');
}

function timeOf(param, text) {
  const timeMs = text === null ? undefined : parseTime(text);
  if (Number.isNaN(timeMs)) malformed(param, 'must be a date or time in ISO 8601');
  return timeMs;
}
