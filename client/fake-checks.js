/** What a FakeFarebox refuses as malformed, by the schemas of the service. */
import { refuse } from './fake-refusal.js';

const TOOL =
  /^(?=.*[^\s\p{Default_Ignorable_Code_Point}])[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,100}$/u;
const METADATA_NAME = /^[^\0\p{Cs}]{1,40}$/u;
const METADATA_TEXT = /^[^\0\p{Cs}]{0,500}$/u;
const METADATA_MEMBERS_MAX = 20;
const HOLD_SECONDS_MAX = 86_400;
const BATCH_MEMBERS_MAX = 1_000;

/** The body of a charge. */
export function checkCharge({ tool, metadata }) {
  if (typeof tool !== 'string' || !TOOL.test(tool)) {
    malformed('tool', 'must be printable text of 1 to 100 characters');
  }
  checkMetadata(metadata);
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
  if (metadata === undefined) return;
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata);
  const members = isObject ? Object.entries(metadata) : [];
  if (isObject && members.length <= METADATA_MEMBERS_MAX && members.every(isMember)) return;
  const limits = '20 members with names of 40 characters and texts of 500';
  malformed('metadata', `must be flat, with at most ${limits}`);
}

function isMember([name, value]) {
  if (!METADATA_NAME.test(name)) return false;
  if (typeof value === 'string') return METADATA_TEXT.test(value);
  return value === null || typeof value === 'number' || typeof value === 'boolean';
}

export function checkMembers(charges) {
  if (Array.isArray(charges) && charges.length >= 1 && charges.length <= BATCH_MEMBERS_MAX) return;
  malformed('charges', `must have 1 to ${BATCH_MEMBERS_MAX} members`);
}

function malformed(param, rule) {
  refuse('invalid_request', `${param} ${rule}.`, param);
}
