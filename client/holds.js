/** Holds: money reserved for a call whose cost is known only afterwards, or that may fail. */
import { hasId, prepare } from './calls.js';
import { isCharge } from './charge-requests.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';

const HOLD = { noun: 'hold', done: 'held', isDone: hasId };
const CAPTURE = { noun: 'charge', done: 'charged', isDone: isCharge };
const CHANGE = { noun: 'change', done: 'done', isDone: hasId };

export class Holds {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  async place(request, options) {
    const { apiKey, tool, expiresIn, metadata, idempotencyKey = crypto.randomUUID() } = request;
    const amount = prepare(HOLD, () => {
      this.#calls.checkApiKey(apiKey);
      return amountToSend(request.amount);
    });
    const body = { apiKey, tool, amount, expiresIn, metadata };
    return this.#write('/v1/holds', body, idempotencyKey, HOLD, options);
  }

  async capture(request, options) {
    const { holdId, final, over, metadata, idempotencyKey = crypto.randomUUID() } = request;
    const body = { amount: amountToSend(request.amount), final, over, metadata };
    const path = `/v1/holds/${idInPath(holdId)}/capture`;
    return this.#write(path, body, idempotencyKey, CAPTURE, options);
  }

  async release({ holdId, idempotencyKey = crypto.randomUUID() }, options) {
    const path = `/v1/holds/${idInPath(holdId)}/release`;
    return this.#write(path, {}, idempotencyKey, CHANGE, options);
  }

  async extend({ holdId, expiresIn, idempotencyKey = crypto.randomUUID() }, options) {
    const path = `/v1/holds/${idInPath(holdId)}/extend`;
    return this.#write(path, { expiresIn }, idempotencyKey, CHANGE, options);
  }

  list({ status, limit } = {}, options) {
    return listAt(this.#calls, '/v1/holds', 'holds', { status, limit }, options);
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
