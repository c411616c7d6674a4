/**
 * What a FakeFarebox refuses before it looks at its books: members and parameters of the wrong type, and
 * unknown members.
 */
import { checkNames, checkText } from './fake-checks.js';
import { malformed } from './fake-refusal.js';

const TOOL_CHARS_MAX = 137;
const APPROVED_MAX = 1_000;
const DESCRIPTION = /^[^\0\p{Cs}]{0,2000}$/u;

function isFlag(param, value) {
  if (typeof value !== 'boolean') malformed(param, 'must be true or false');
}

function isDescription(param, value) {
  if (typeof value === 'string' && DESCRIPTION.test(value)) return;
  malformed(param, 'must be text of at most 2000 characters, without NUL or unpaired surrogates');
}

function isWindow(param, value) {
  if (typeof value !== 'object' || Array.isArray(value)) {
    malformed(param, 'must be an object or null');
  }
  const isKnown = Object.keys(value ?? {}).every((name) => /^(per|limit)$/.test(name));
  if (!isKnown) malformed(param, 'has an unknown field');
}

/** `limits`: the smallest and the largest number of names. */
function namesOf(check, limits) {
  return (param, value) => {
    checkNames(param, value, limits);
    for (const [n, name] of (value ?? []).entries()) check(`${param}.${n}`, name);
  };
}

function oneOf(...words) {
  return (param, value) => {
    if (!words.includes(value)) malformed(param, `must be one of: ${words.join(', ')}`);
  };
}

function idOf(prefix) {
  const rule = new RegExp(`^${prefix}_[0-9a-f]{32}$`);
  return (param, value) => {
    if (typeof value === 'string' && rule.test(value)) return;
    malformed(param, `must be an id such as ${prefix}_01a1fd6455e57aa3b31e95f51a48130e`);
  };
}

function orNull(check) {
  return (param, value) => value === null || check(param, value);
}

/** The members that are checked where they are read. */
function later(...names) {
  return Object.fromEntries(names.map((name) => [name, () => {}]));
}

const budget = {
  ...later('name', 'limit', 'maxPerCall', 'maxLease', 'expiresAt', 'metadata'),
  window: isWindow,
  tools: namesOf((param, name) => checkText(param, name, TOOL_CHARS_MAX)),
  developers: namesOf(idOf('dev')),
  approvedDevelopers: namesOf(idOf('dev'), [0, APPROVED_MAX]),
  allowLeases: isFlag,
  approveDevelopers: isFlag,
  mayDelegate: isFlag,
};
const charge = later('apiKey', 'tool', 'amount', 'units', 'metadata');
const hold = { ...charge, ...later('expiresIn') };
const capture = {
  ...later('amount', 'units', 'metadata'),
  final: isFlag,
  over: oneOf('reject', 'cap', 'overflow'),
};
const question = {
  ...later('apiKey', 'tool', 'amount', 'reason', 'expiresIn'),
  developerId: idOf('dev'),
};

/**
 * The members of bodies, by route. The service ignores unknown members of open bodies, and refuses those of
 * closed ones.
 */
const OPEN = { 'POST /v1/tools': { description: isDescription } };
const CLOSED = {
  'POST /v1/charges/batch': later('charges'),
  'POST /v1/charges/:id/refund': later('amount'),
  'POST /v1/holds': hold,
  'POST /v1/holds/:id/capture': capture,
  'POST /v1/holds/:id/extend': later('expiresIn'),
  'PATCH /v1/tools/:id': {
    ...later('price', 'card'),
    description: isDescription,
    archived: isFlag,
  },
  'POST /v1/quote': later('tool', 'units'),
  'POST /v1/budgets': { ...budget, parentId: orNull(idOf('bdg')) },
  'PATCH /v1/budgets/:id': budget,
  'POST /v1/budgets/:id/close': { releaseHolds: isFlag },
  'POST /v1/budgets/:id/keys': later('name', 'expiresAt'),
  'POST /v1/keys/:id/roll': later('overlapSeconds'),
  'POST /v1/keys/:id/revoke': { releaseHolds: isFlag },
  'POST /v1/approvals': question,
};
const page = later('limit', 'cursor');
/** The parameters of lists and earnings. */
const QUERIES = {
  'GET /v1/charges': { ...page, ...later('tool', 'from', 'to'), consumerId: idOf('cns') },
  'GET /v1/usage': { ...page, ...later('tool', 'from', 'to') },
  'GET /v1/earnings': later('tool', 'from', 'to', 'interval'),
  'GET /v1/holds': { ...page, status: oneOf('open', 'captured', 'released', 'expired') },
  'GET /v1/tools': { ...page, ...later('name'), archived: oneOf('true', 'false') },
  'GET /v1/budgets': { ...page, parentId: idOf('bdg') },
  'GET /v1/budgets/:id/usage': { ...page, ...later('by', 'from', 'to') },
  'GET /v1/budgets/:id/keys': page,
  'GET /v1/approvals': {
    ...page,
    status: oneOf('pending', 'approved', 'denied', 'expired'),
    budgetId: idOf('bdg'),
  },
};

export function checkShape(route, body, query) {
  checkMembers(OPEN[route] ?? CLOSED[route] ?? {}, Object.entries(body), route in CLOSED);
  checkMembers(QUERIES[route] ?? {}, query, route in QUERIES);
}

function checkMembers(rules, members, isClosed = false) {
  for (const [name, value] of members) {
    if (Object.hasOwn(rules, name)) rules[name](name, value);
    else if (isClosed) malformed(name, 'is not a field of this body');
  }
}

const MEMBERS = {
  charge,
  hold,
  capture: { holdId: isHold, ...capture },
  release: { holdId: isHold },
};

function isHold(param, value) {
  if (typeof value !== 'string') malformed(param, 'must be the id of a hold');
}

/** A member of a batch. */
export function checkMember(member) {
  if (typeof member !== 'object' || member === null || Array.isArray(member)) {
    malformed(undefined, 'A member of the batch must be an object');
  }
  const { op = 'charge' } = member;
  oneOf(...Object.keys(MEMBERS))('op', op);
  const rules = { ...MEMBERS[op], ...later('op', 'idempotencyKey') };
  if (rules.holdId) isHold('holdId', member.holdId);
  checkMembers(rules, Object.entries(member), true);
}
