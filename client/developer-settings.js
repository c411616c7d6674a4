/** Settings of a developer: its profile, and the balance below which it gets `balance.low`. */
import { prepare } from './calls.js';
import { amountToSend } from './money.js';

const CHANGE = { noun: 'change', done: 'done' };

/** Settings that are read and changed as a whole, at one path. */
class Settings {
  #calls;
  #path;

  constructor(calls, path) {
    this.#calls = calls;
    this.#path = path;
  }

  get(options) {
    return this.#calls.get(this.#path, {}, options);
  }

  async update(changes, options) {
    const asked = { method: 'PATCH', path: this.#path, body: changes };
    return (await this.#calls.write(asked, CHANGE, options)).json;
  }
}

export class Developer extends Settings {
  constructor(calls) {
    super(calls, '/v1/developer');
  }
}

export class LowBalance extends Settings {
  constructor(calls) {
    super(calls, '/v1/low-balance');
  }

  async update({ threshold, ...others }, options) {
    const dollars = prepare(CHANGE, () =>
      threshold === null ? null : amountToSend(threshold, 'threshold'),
    );
    return super.update({ ...others, threshold: dollars }, options);
  }
}
