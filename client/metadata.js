/** What metadata may be, as the service has it: checked before a call is decided that is sent later. */
import { createError } from './errors.js';

const MEMBERS_MAX = 20;
const NAME = /^[^\0\p{Cs}]{1,40}$/u;
const TEXT = /^[^\0\p{Cs}]{0,500}$/u;

/** `metadata` comes from JSON. */
export function checkMetadata(metadata) {
  const broken = brokenRule(metadata);
  if (!broken) return;
  throw createError('invalid_request', `metadata cannot be charged. ${broken.rule}`, {
    param: 'metadata',
  });
}

/** The rule that it breaks, as a sentence, and by which value; undefined if it breaks none. */
export function brokenRule(metadata) {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    return { rule: 'It must be an object.' };
  }
  const members = Object.entries(metadata);
  if (members.length > MEMBERS_MAX) {
    return { rule: `It may have at most ${MEMBERS_MAX} fields.` };
  }
  if (!members.every(([name]) => NAME.test(name))) {
    return { rule: 'A name has 1 to 40 characters, without NUL or unpaired surrogates.' };
  }
  const wrong = members.find(([, value]) => !isValue(value));
  const rule =
    'A value is a number, a boolean, null, or text of up to 500 characters, without NUL or unpaired surrogates.';
  return wrong && { rule, member: wrong[0] };
}

function isValue(value) {
  if (typeof value === 'string') return TEXT.test(value);
  return typeof value !== 'object' || value === null;
}
