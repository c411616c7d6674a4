/** The consumer's side of Farebox: balance, usage, top-ups, budgets and approvals. */
import { Approvals } from './approvals.js';
import { Budgets } from './budgets.js';
import { Calls, CONNECTION, prepare } from './calls.js';
import { idInPath, Records } from './list.js';
import { amountToSend } from './money.js';
import { publicReceipt } from './receipts.js';
import * as settings from './settings.js';

const PAYMENT = ['amount', 'idempotencyKey'];
const TOP_UP = { noun: 'top-up', done: 'done', isDone: hasTopUpId };

export class FareboxConsumer {
  #calls;

  constructor(options = {}) {
    settings.checkMembers('new FareboxConsumer()', options, [...CONNECTION, 'consumerKey']);
    const env = globalThis.process?.env ?? {};
    const key = settings.checkConsumerKey(options.consumerKey ?? env.FAREBOX_CONSUMER_KEY);
    this.#calls = new Calls(key, {
      ...settings.membersOf(options, CONNECTION),
      baseUrl: options.baseUrl ?? env.FAREBOX_URL,
    });
    this.charges = new Records(this.#calls, '/v1/usage', 'charges', ['tool', 'from', 'to']);
    this.holds = new Records(this.#calls, '/v1/holds', 'holds', ['status']);
    this.topUps = new TopUps(this.#calls);
    this.budgets = new Budgets(this.#calls);
    this.approvals = new Approvals(this.#calls);
  }

  get lastRequestId() {
    return this.#calls.transport.lastRequestId;
  }

  balance(options) {
    return this.#calls.get('/v1/balance', {}, options, hasBalance);
  }

  usageByDay(filter = {}, options) {
    const query = settings.membersOf(filter, ['from']);
    return this.#calls.get('/v1/usage/daily', query, options);
  }

  statement(month, options) {
    return this.#calls.get(`/v1/statements/${idInPath(month)}`, {}, options);
  }

  topUp(request, options) {
    return this.#pay('/v1/top-up', 'a top-up', PAYMENT, request, options);
  }

  checkout(request, options) {
    return this.#pay('/v1/checkout', 'a checkout', [...PAYMENT, 'saveCard'], request, options);
  }

  async verifyReceipt(receipt, options) {
    const asked = { method: 'POST', path: '/v1/receipts/verify', body: { receipt } };
    return this.#calls.read(asked, options);
  }

  publicReceipt(receipt, options) {
    return publicReceipt(this.#calls, receipt, options);
  }

  async #pay(path, what, known, request, options) {
    settings.checkMembers(what, request, known);
    const { amount, saveCard, idempotencyKey } = request;
    const dollars = prepare(TOP_UP, () => amountToSend(amount));
    const body = { amount: dollars, ...(saveCard === true && { saveCard }) };
    return this.#calls.post(path, { body, idempotencyKey }, TOP_UP, this.#calls.toPay(options));
  }
}

class TopUps extends Records {
  #calls;

  constructor(calls) {
    super(calls, '/v1/top-up', 'topUps', []);
    this.#calls = calls;
  }

  async quote(request, options) {
    const query = { ...request, amount: amountToSend(request.amount) };
    return this.#calls.get('/v1/top-up/quote', query, options);
  }
}

function hasTopUpId({ topUpId }) {
  return typeof topUpId === 'string';
}

function hasBalance({ balance }) {
  return typeof balance === 'number';
}
