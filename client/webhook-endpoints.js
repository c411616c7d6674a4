/** The webhook endpoints of a developer: where events are sent, and the log of deliveries. */
import { idInPath, listAt } from './list.js';
import { membersOf } from './settings.js';

const PATH = '/v1/webhook-endpoints';
const ENDPOINT = ['url', 'types', 'description'];
const CHANGE = { noun: 'change', done: 'done' };

export class WebhookEndpoints {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  create(request, options) {
    const { idempotencyKey, ...endpoint } = membersOf(request, [...ENDPOINT, 'idempotencyKey']);
    return this.#calls.post(PATH, { body: endpoint, idempotencyKey }, CHANGE, options);
  }

  list(filter, options) {
    return listAt(this.#calls, PATH, 'webhookEndpoints', filter, [], options);
  }

  get(id, options) {
    return this.#calls.get(at(id), {}, options);
  }

  async update(id, changes, options) {
    const body = membersOf(changes, [...ENDPOINT, 'enabled']);
    const asked = { method: 'PATCH', path: at(id), body };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }

  async delete(id, options) {
    const asked = { method: 'DELETE', path: at(id) };
    return this.#calls.writeOnce(asked, CHANGE, options);
  }

  rollSecret(id, request = {}, options) {
    const known = ['overlapSeconds', 'idempotencyKey'];
    const { idempotencyKey, ...body } = membersOf(request, known);
    return this.#calls.post(`${at(id)}/roll-secret`, { body, idempotencyKey }, CHANGE, options);
  }

  test(id, options) {
    return this.#once(`${at(id)}/test`, {}, options);
  }

  listDeliveries(id, filter, options) {
    return listAt(this.#calls, `${at(id)}/deliveries`, 'deliveries', filter, ['status'], options);
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
