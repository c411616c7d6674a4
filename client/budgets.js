/** Budgets, and the spend keys to hand out: what the holder of a key may spend, and on what. */
import { prepare } from './calls.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';

const BUDGET = { noun: 'budget', done: 'done' };
const KEY = { noun: 'key', done: 'done' };
const CHANGE = { noun: 'change', done: 'done' };

export class Budgets {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  async create({ idempotencyKey, ...request }, options) {
    const asked = { body: prepare(BUDGET, () => withAmounts(request)), idempotencyKey };
    return this.#calls.post('/v1/budgets', asked, BUDGET, options);
  }

  list(filter, options) {
    return listAt(this.#calls, '/v1/budgets', 'budgets', filter, options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/budgets/${idInPath(id)}`, {}, options);
  }

  async update(id, changes, options) {
    const path = `/v1/budgets/${idInPath(id)}`;
    const asked = { method: 'PATCH', path, body: prepare(CHANGE, () => withAmounts(changes)) };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }

  async close(id, body = {}, options) {
    const asked = { method: 'POST', path: `/v1/budgets/${idInPath(id)}/close`, body };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }

  usage(id, filter, options) {
    return listAt(this.#calls, `/v1/budgets/${idInPath(id)}/usage`, 'usage', filter, options);
  }

  refusals(id, filter, options) {
    return this.#calls.get(`/v1/budgets/${idInPath(id)}/refusals`, filter, options);
  }

  createKey(id, { idempotencyKey, ...body } = {}, options) {
    const path = `/v1/budgets/${idInPath(id)}/keys`;
    return this.#calls.post(path, { body, idempotencyKey }, KEY, options);
  }

  listKeys(id, filter, options) {
    return listAt(this.#calls, `/v1/budgets/${idInPath(id)}/keys`, 'keys', filter, options);
  }

  rollKey(keyId, { idempotencyKey, ...body } = {}, options) {
    const path = `/v1/keys/${idInPath(keyId)}/roll`;
    return this.#calls.post(path, { body, idempotencyKey }, KEY, options);
  }

  revokeKey(keyId, body = {}, options) {
    const path = `/v1/keys/${idInPath(keyId)}/revoke`;
    const asked = { method: 'POST', path, body };
    return this.#calls.writeOnce(asked, CHANGE, options);
  }
}

/** Null removes a limit, so it is sent unchanged. */
const limitOf = (limit, param) => (limit === null ? null : amountToSend(limit, param));

function withAmounts({ limit, maxPerCall, maxLease, window, ...request }) {
  return {
    ...request,
    limit: limitOf(limit, 'limit'),
    maxPerCall: limitOf(maxPerCall, 'maxPerCall'),
    maxLease: limitOf(maxLease, 'maxLease'),
    window: window && { ...window, limit: amountToSend(window.limit, 'window.limit') },
  };
}
