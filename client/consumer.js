/** The consumer's side of Farebox: balance, usage, top-ups and budgets. */
import { Budgets } from './budgets.js';
import { Calls } from './calls.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import * as settings from './settings.js';

const TOP_UP = { noun: 'top-up', done: 'done' };

export class FareboxConsumer {
  #calls;

  constructor(options = {}) {
    const env = globalThis.process?.env ?? {};
    const key = settings.checkConsumerKey(options.consumerKey ?? env.FAREBOX_CONSUMER_KEY);
    this.#calls = new Calls(key, { ...options, baseUrl: options.baseUrl ?? env.FAREBOX_URL });
    this.budgets = new Budgets(this.#calls);
  }

  get lastRequestId() {
    return this.#calls.transport.lastRequestId;
  }

  balance(options) {
    return this.#calls.get('/v1/balance', {}, options);
  }

  usage({ tool, from, to, limit } = {}, options) {
    return listAt(this.#calls, '/v1/usage', 'charges', { tool, from, to, limit }, options);
  }

  statement(month, options) {
    return this.#calls.get(`/v1/statements/${idInPath(month)}`, {}, options);
  }

  topUp(request, options) {
    return this.#pay('/v1/top-up', request, options);
  }

  checkout(request, options) {
    return this.#pay('/v1/checkout', request, options);
  }

  topUps({ limit } = {}, options) {
    return listAt(this.#calls, '/v1/top-up', 'topUps', { limit }, options);
  }

  findTopUp(id, options) {
    return this.#calls.get(`/v1/top-up/${idInPath(id)}`, {}, options);
  }

  async #pay(path, { amount, saveCard, idempotencyKey = crypto.randomUUID() }, options) {
    const body = { amount: amountToSend(amount), ...(saveCard === true && { saveCard }) };
    const asked = { method: 'POST', path, body, idempotencyKey };
    return (await this.#calls.write(asked, TOP_UP, options)).json;
  }
}
