/** The developer's tools: the names used in charges, and their prices. */
import { prepare } from './calls.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';

const DEED = { noun: 'change', done: 'done' };

export class Tools {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  list({ archived, name, limit } = {}, options) {
    return listAt(this.#calls, '/v1/tools', 'tools', { archived, name, limit }, options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/tools/${idInPath(id)}`, {}, options);
  }

  async create({ name, description, price }, options) {
    const body = { name, description, price: priceToSend(price) };
    return this.#calls.writeOnce({ method: 'POST', path: '/v1/tools', body }, DEED, options);
  }

  async update(id, { description, price, archived }, options) {
    const body = { description, price: priceToSend(price), archived };
    const asked = { method: 'PATCH', path: `/v1/tools/${idInPath(id)}`, body };
    return (await this.#calls.write(asked, DEED, options)).json;
  }
}

/** Null removes the price. */
function priceToSend(price) {
  return price === null ? null : prepare(DEED, () => amountToSend(price, 'price'));
}
