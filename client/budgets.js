/** Budgets, and the spend keys to hand out: what the holder of a key may spend, and on what. */
import { prepare } from './calls.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import { membersOf } from './settings.js';

const BUDGET = { noun: 'budget', done: 'done' };
const KEY = { noun: 'key', done: 'done' };
const SETTINGS = [
  'name',
  'limit',
  'window',
  'maxPerCall',
  'allowLeases',
  'maxLease',
  'tools',
  'developers',
  'approveDevelopers',
  'approvedDevelopers',
  'mayDelegate',
  'expiresAt',
  'metadata',
];
const CHANGE = { noun: 'change', done: 'done' };

export class Budgets {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  async create(request, options) {
    const known = [...SETTINGS, 'parentId', 'idempotencyKey'];
    const { idempotencyKey, ...budget } = membersOf(request, known);
    const asked = { body: prepare(BUDGET, () => withAmounts(budget)), idempotencyKey };
    return this.#calls.post('/v1/budgets', asked, BUDGET, options);
  }

  list(filter, options) {
    return listAt(this.#calls, '/v1/budgets', 'budgets', filter, ['parentId'], options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/budgets/${idInPath(id)}`, {}, options);
  }

  async update(id, changes, options) {
    const path = `/v1/budgets/${idInPath(id)}`;
    const budget = membersOf(changes, SETTINGS);
    const asked = { method: 'PATCH', path, body: prepare(CHANGE, () => withAmounts(budget)) };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }

  async close(id, request = {}, options) {
    const body = membersOf(request, ['releaseHolds']);
    const asked = { method: 'POST', path: `/v1/budgets/${idInPath(id)}/close`, body };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }

  usage(id, filter, options) {
    const path = `/v1/budgets/${idInPath(id)}/usage`;
    return listAt(this.#calls, path, 'usage', filter, ['by', 'from', 'to'], options);
  }

  refusals(id, filter = {}, options) {
    const path = `/v1/budgets/${idInPath(id)}/refusals`;
    return this.#calls.get(path, membersOf(filter, ['hours']), options);
  }

  createKey(id, request = {}, options) {
    const known = ['name', 'expiresAt', 'idempotencyKey'];
    const { idempotencyKey, ...body } = membersOf(request, known);
    const path = `/v1/budgets/${idInPath(id)}/keys`;
    return this.#calls.post(path, { body, idempotencyKey }, KEY, options);
  }

  listKeys(id, filter, options) {
    return listAt(this.#calls, `/v1/budgets/${idInPath(id)}/keys`, 'keys', filter, [], options);
  }

  rollKey(keyId, request = {}, options) {
    const known = ['overlapSeconds', 'idempotencyKey'];
    const { idempotencyKey, ...body } = membersOf(request, known);
    const path = `/v1/keys/${idInPath(keyId)}/roll`;
    return this.#calls.post(path, { body, idempotencyKey }, KEY, options);
  }

  revokeKey(keyId, request = {}, options) {
    const body = membersOf(request, ['releaseHolds']);
    const path = `/v1/keys/${idInPath(keyId)}/revoke`;
    const asked = { method: 'POST', path, body };
    return this.#calls.writeOnce(asked, CHANGE, options);
  }
}

/** Null removes a limit, so it is sent unchanged. */
const limitOf = (limit, param) => (limit === null ? null : amountToSend(limit, param));

function withAmount(window) {
  const limit = amountToSend(window.limit, 'window.limit');
  return { ...membersOf(window, ['per']), limit };
}

function withAmounts({ limit, maxPerCall, maxLease, window, ...request }) {
  return {
    ...request,
    limit: limitOf(limit, 'limit'),
    maxPerCall: limitOf(maxPerCall, 'maxPerCall'),
    maxLease: limitOf(maxLease, 'maxLease'),
    window: window && withAmount(window),
  };
}
