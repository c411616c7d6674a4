/** What metadata may be, as the service has it: checked before a call is decided that is sent later. */
import { createError } from './errors.js';

const MEMBERS_MAX = 20;
const NAME = /^[^\0\p{Cs}]{1,40}$/u;
const TEXT = /^[^\0\p{Cs}]{0,500}$/u;

/** `metadata` comes from JSON. */
export function checkMetadata(metadata) {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    refuse('It must be an object.');
  }
  const members = Object.entries(metadata);
  if (members.length > MEMBERS_MAX) refuse(`It may have at most ${MEMBERS_MAX} members.`);
  for (const [name, value] of members) {
    if (!NAME.test(name)) refuse('A name has 1 to 40 characters, without NUL and lone surrogates.');
    if (!isValue(value)) {
      refuse(
        'A member is a number, a boolean, null, or text of up to 500 characters, without NUL and lone surrogates.',
      );
    }
  }
}

function isValue(value) {
  if (typeof value === 'string') return TEXT.test(value);
  return typeof value !== 'object' || value === null;
}

function refuse(rule) {
  throw createError('invalid_request', `metadata cannot be charged. ${rule}`, {
    param: 'metadata',
  });
}
