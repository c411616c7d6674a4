/** What a FakeFarebox refuses as malformed, by the schemas of the service. */
import { refuse } from './fake-refusal.js';
import { brokenRule } from './metadata.js';

const TOOL =
  /^(?=.*[^\s\p{Default_Ignorable_Code_Point}])[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,100}$/u;
const HOUR_MS = 3_600_000;
const HOLD_SECONDS_MAX = 86_400;
const BATCH_MEMBERS_MAX = 1_000;

/** The body of a charge. */
export function checkCharge({ tool, metadata }) {
  checkTool('tool', tool);
  checkMetadata(metadata);
}

export function checkTool(param, name) {
  if (typeof name === 'string' && TOOL.test(name)) return;
  malformed(param, 'must be printable text of 1 to 100 characters');
}

/** The body of a hold. */
export function checkHold({ expiresIn, ...charge }) {
  checkCharge(charge);
  if (expiresIn !== undefined) checkSeconds(expiresIn);
}

export function checkSeconds(expiresIn) {
  if (Number.isInteger(expiresIn) && expiresIn >= 1 && expiresIn <= HOLD_SECONDS_MAX) return;
  malformed('expiresIn', `must be a whole number from 1 to ${HOLD_SECONDS_MAX}`);
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

/** Gives whether a time is in the range of the query. */
export function rangeOf(query) {
  const [fromMs, toMs] = ['from', 'to'].map((name) => timeOf(name, query.get(name)));
  if (fromMs > toMs) refuse('invalid_request', 'from must not be after to.', 'from');
  return (time) => !(Date.parse(time) < fromMs || Date.parse(time) >= toMs);
}

/** Earnings are stored by hour. */
export function checkHours(query) {
  for (const name of ['from', 'to']) {
    if (timeOf(name, query.get(name)) % HOUR_MS > 0)
      malformed(name, 'must be the beginning of a UTC hour');
  }
  if (query.has('from') && query.get('from') === query.get('to'))
    malformed('from', 'must be before to');
}

function timeOf(param, text) {
  const timeMs = text === null ? undefined : Date.parse(text);
  if (Number.isNaN(timeMs)) malformed(param, 'must be a date or time in ISO 8601');
  return timeMs;
}

function malformed(param, rule) {
  refuse('invalid_request', `${param} ${rule}.`, param);
}
