/** Holds: money reserved for a call whose cost is known only afterwards, or that may fail. */
import { hasId, prepare } from './calls.js';
import { isCharge } from './charge-requests.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import { checkMembers, membersOf } from './settings.js';
import { unitsToSend } from './units.js';

const HOLD = { noun: 'hold', done: 'held', isDone: hasId };
const CAPTURE = { noun: 'charge', done: 'charged', isDone: isCharge };
const PLACED = ['apiKey', 'tool', 'amount', 'units', 'expiresIn', 'metadata', 'idempotencyKey'];
const CAPTURED = ['holdId', 'amount', 'units', 'final', 'over', 'metadata', 'idempotencyKey'];
const EXTENDED = ['holdId', 'expiresIn', 'idempotencyKey'];
const CHANGE = { noun: 'change', done: 'done', isDone: hasId };

export class Holds {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  async place(request, options) {
    const { idempotencyKey = crypto.randomUUID(), ...hold } = membersOf(request, PLACED);
    const body = prepare(HOLD, () => {
      this.#calls.checkApiKey(hold.apiKey);
      return { ...hold, amount: amountToSend(hold.amount), units: unitsToSend(hold.units) };
    });
    return this.#write('/v1/holds', body, idempotencyKey, HOLD, options);
  }

  async capture(request, options) {
    const members = membersOf(request, CAPTURED);
    const { holdId, idempotencyKey = crypto.randomUUID(), ...body } = members;
    body.amount = amountToSend(body.amount);
    body.units = unitsToSend(body.units);
    const path = `/v1/holds/${idInPath(holdId)}/capture`;
    return this.#write(path, body, idempotencyKey, CAPTURE, options);
  }

  async release(request, options) {
    checkMembers('a release', request, ['holdId', 'idempotencyKey']);
    const { holdId, idempotencyKey = crypto.randomUUID() } = request;
    const path = `/v1/holds/${idInPath(holdId)}/release`;
    return this.#write(path, {}, idempotencyKey, CHANGE, options);
  }

  async extend(request, options) {
    const members = membersOf(request, EXTENDED);
    const { holdId, idempotencyKey = crypto.randomUUID(), ...body } = members;
    const path = `/v1/holds/${idInPath(holdId)}/extend`;
    return this.#write(path, body, idempotencyKey, CHANGE, options);
  }

  list(filter, options) {
    return listAt(this.#calls, '/v1/holds', 'holds', filter, ['status'], options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/holds/${idInPath(id)}`, {}, options);
  }

  async #write(path, body, idempotencyKey, effect, options) {
    const asked = { method: 'POST', path, body, idempotencyKey };
    const { json, replayed } = await this.#calls.write(asked, effect, options);
    return { ...json, replayed };
  }
}
