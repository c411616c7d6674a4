/** Holds: money reserved for a call whose cost is known only afterwards, or that may fail. */
import { hasId, prepare } from './calls.js';
import { isCharge } from './charge-requests.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import { checkMembers } from './settings.js';

const HOLD = { noun: 'hold', done: 'held', isDone: hasId };
const CAPTURE = { noun: 'charge', done: 'charged', isDone: isCharge };
const CHANGE = { noun: 'change', done: 'done', isDone: hasId };

export class Holds {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  async place({ idempotencyKey = crypto.randomUUID(), ...request }, options) {
    const body = prepare(HOLD, () => {
      this.#calls.checkApiKey(request.apiKey);
      return { ...request, amount: amountToSend(request.amount) };
    });
    return this.#write('/v1/holds', body, idempotencyKey, HOLD, options);
  }

  async capture({ holdId, idempotencyKey = crypto.randomUUID(), ...request }, options) {
    const body = { ...request, amount: amountToSend(request.amount) };
    const path = `/v1/holds/${idInPath(holdId)}/capture`;
    return this.#write(path, body, idempotencyKey, CAPTURE, options);
  }

  async release(request, options) {
    checkMembers('a release', request, ['holdId', 'idempotencyKey']);
    const { holdId, idempotencyKey = crypto.randomUUID() } = request;
    const path = `/v1/holds/${idInPath(holdId)}/release`;
    return this.#write(path, {}, idempotencyKey, CHANGE, options);
  }

  async extend({ holdId, idempotencyKey = crypto.randomUUID(), ...body }, options) {
    const path = `/v1/holds/${idInPath(holdId)}/extend`;
    return this.#write(path, body, idempotencyKey, CHANGE, options);
  }

  list(filter, options) {
    return listAt(this.#calls, '/v1/holds', 'holds', filter, options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/holds/${idInPath(id)}`, {}, options);
  }

  async #write(path, body, idempotencyKey, deed, options) {
    const asked = { method: 'POST', path, body, idempotencyKey };
    const { json, replayed } = await this.#calls.write(asked, deed, options);
    return { ...json, replayed };
  }
}
