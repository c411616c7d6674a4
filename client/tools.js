/** The developer's tools: the names used in charges, their prices and their rate cards. */
import { prepare } from './calls.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import { checkMembers, membersOf } from './settings.js';
import { cardToSend } from './units.js';

const TOOL = ['name', 'description', 'price', 'card'];
const CHANGED = ['description', 'price', 'card', 'archived'];
const DEED = { noun: 'change', done: 'done' };

export class Tools {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  list(filter, options) {
    return listAt(this.#calls, '/v1/tools', 'tools', filter, ['archived', 'name'], options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/tools/${idInPath(id)}`, {}, options);
  }

  /** A version is a number, and an id in a path is text. */
  getCard(id, version, options) {
    const path = `/v1/tools/${idInPath(id)}/cards/${idInPath(String(version))}`;
    return this.#calls.get(path, {}, options);
  }

  async create(tool, options) {
    checkMembers('a new tool', tool, TOOL);
    const body = { ...membersOf(tool, TOOL), ...pricesToSend(tool) };
    return this.#calls.writeOnce({ method: 'POST', path: '/v1/tools', body }, DEED, options);
  }

  async update(id, changes, options) {
    const body = { ...membersOf(changes, CHANGED), ...pricesToSend(changes) };
    const asked = { method: 'PATCH', path: `/v1/tools/${idInPath(id)}`, body };
    return (await this.#calls.write(asked, DEED, options)).json;
  }
}

/** Null removes the price, or the card. */
function pricesToSend({ price, card }) {
  return prepare(DEED, () => ({
    price: price === null ? null : amountToSend(price, 'price'),
    card: cardToSend(card),
  }));
}
