/** Settings of a developer: its profile, and the balance below which it gets `balance.low`. */
import { prepare } from './calls.js';
import { amountToSend } from './money.js';
import { membersOf } from './settings.js';

const CHANGE = { noun: 'change', done: 'done' };

/** Settings that are read and changed as a whole, at one path. */
class Settings {
  #calls;
  #path;
  #known;

  constructor(calls, path, known) {
    this.#calls = calls;
    this.#path = path;
    this.#known = known;
  }

  get(options) {
    return this.#calls.get(this.#path, {}, options);
  }

  async update(changes, options) {
    const asked = { method: 'PATCH', path: this.#path, body: membersOf(changes, this.#known) };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }
}

export class Developer extends Settings {
  constructor(calls) {
    super(calls, '/v1/developer', ['returnUrl']);
  }
}

export class LowBalance extends Settings {
  constructor(calls) {
    super(calls, '/v1/low-balance', ['threshold']);
  }

  async update(changes, options) {
    const { threshold } = changes;
    const dollars = prepare(CHANGE, () =>
      threshold === null ? null : amountToSend(threshold, 'threshold'),
    );
    return super.update({ ...changes, threshold: dollars }, options);
  }
}
