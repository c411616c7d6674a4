/** The webhook endpoints of a developer: where events are sent, and the log of deliveries. */
import { idInPath, listAt } from './list.js';

const PATH = '/v1/webhook-endpoints';
const CHANGE = { noun: 'change', done: 'done' };

export class WebhookEndpoints {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  create({ idempotencyKey, ...endpoint }, options) {
    return this.#calls.post(PATH, { body: endpoint, idempotencyKey }, CHANGE, options);
  }

  list(filter, options) {
    return listAt(this.#calls, PATH, 'webhookEndpoints', filter, options);
  }

  get(id, options) {
    return this.#calls.get(at(id), {}, options);
  }

  async update(id, changes, options) {
    const asked = { method: 'PATCH', path: at(id), body: changes };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }

  async delete(id, options) {
    const asked = { method: 'DELETE', path: at(id) };
    return this.#calls.writeOnce(asked, CHANGE, options);
  }

  rollSecret(id, { idempotencyKey, ...body } = {}, options) {
    return this.#calls.post(`${at(id)}/roll-secret`, { body, idempotencyKey }, CHANGE, options);
  }

  test(id, options) {
    return this.#once(`${at(id)}/test`, {}, options);
  }

  listDeliveries(id, filter, options) {
    return listAt(this.#calls, `${at(id)}/deliveries`, 'deliveries', filter, options);
  }

  redeliver(id, eventId, options) {
    return this.#once(`${at(id)}/deliveries/${idInPath(eventId)}/redeliver`, {}, options);
  }

  /** A request that is sent twice would take effect twice. */
  #once(path, body, options) {
    return this.#calls.writeOnce({ method: 'POST', path, body }, CHANGE, options);
  }
}

function at(id) {
  return `${PATH}/${idInPath(id)}`;
}
