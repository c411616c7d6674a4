/**
 * The developer's side of Farebox: charges consumers for tool calls. The tool may run when charge() resolves with
 * `paid: true`. A charge() uses one idempotency key for all of its attempts, so it takes the money at most once even if
 * the network fails. index.d.ts documents everything.
 */
import { CAN_SHARE_REQUESTS } from '#send';
import { Approvals, askAndRetry } from './approvals.js';
import {
  Calls,
  CONNECTION,
  checkIdempotencyKey,
  failed,
  hasId,
  hasResults,
  prepare,
  READ,
} from './calls.js';
import { CHARGED, postCharge, postCharges, prepareCharge } from './charge-requests.js';
import { Coalescer } from './coalescer.js';
import { Developer, LowBalance } from './developer-settings.js';
import { createError } from './errors.js';
import { Holds } from './holds.js';
import { openLease } from './lease.js';
import { Leases } from './leases.js';
import { idInPath, listAt, Records } from './list.js';
import { amountToSend } from './money.js';
import { publicReceipt, ReceiptKeys, verifyReceipt } from './receipts.js';
import * as settings from './settings.js';
import { Tools } from './tools.js';
import { unitsToSend } from './units.js';
import { warnOfCall } from './warning.js';
import { WebhookEndpoints } from './webhook-endpoints.js';

const SETTINGS = [
  ...CONNECTION,
  'secretKey',
  'onUnavailable',
  'onError',
  'coalesce',
  'receiptKeys',
];
const LEASE = ['apiKey', 'tools', 'amount', 'expiresIn', 'onSettled', 'journal'];
const REFUNDED = ['chargeId', 'amount', 'idempotencyKey'];
const BATCHED = [
  'op',
  'apiKey',
  'tool',
  'holdId',
  'amount',
  'units',
  'expiresIn',
  'final',
  'over',
  'metadata',
  'idempotencyKey',
];
const CHARGE_ID = /^chg_[0-9a-f]+$/;
const CHARGE = { noun: 'charge', done: 'charged' };
const REFUND = { noun: 'refund', done: 'refunded', isDone: hasId };
const BATCH = { noun: 'batch', done: 'done' };

export class Farebox {
  #calls;
  #coalescer;
  #receiptKeys;

  constructor(options = {}) {
    settings.checkMembers('new Farebox()', options, SETTINGS);
    const env = globalThis.process?.env ?? {};
    const key = settings.checkSecretKey(options.secretKey ?? env.FAREBOX_SECRET_KEY);
    this.#calls = new Calls(key, {
      ...settings.membersOf(options, CONNECTION),
      baseUrl: options.baseUrl ?? env.FAREBOX_URL,
    });
    this.onUnavailable = settings.checkOnUnavailable(options.onUnavailable ?? 'fail');
    this.onError = settings.checkOnError(options.onError ?? warnOfCall);
    if (settings.checkCoalesce(options.coalesce ?? CAN_SHARE_REQUESTS)) {
      this.#coalescer = new Coalescer(postCharges.bind(undefined, this.#calls.transport));
    }
    const keys = options.receiptKeys && settings.checkReceiptKeys(options.receiptKeys);
    this.#receiptKeys = new ReceiptKeys(
      async () =>
        keys ?? (await this.#calls.get('/v1/receipts/keys', {}, undefined, hasReceiptKeys)).keys,
    );
    this.charges = new Records(this.#calls, '/v1/charges', 'charges', [
      'tool',
      'consumerId',
      'from',
      'to',
    ]);
    // These top-ups belong to consumers, so a developer cannot read one by its id.
    this.topUps = {
      list: (filter, listOptions) =>
        listAt(this.#calls, '/v1/top-ups', 'topUps', filter, [], listOptions),
    };
    this.developer = new Developer(this.#calls);
    this.lowBalance = new LowBalance(this.#calls);
    this.tools = new Tools(this.#calls);
    this.holds = new Holds(this.#calls);
    this.webhookEndpoints = new WebhookEndpoints(this.#calls);
    this.approvals = new Approvals(this.#calls);
    this.leases = new Leases(this.#calls);
  }

  get lastRequestId() {
    return this.#calls.transport.lastRequestId;
  }

  async charge(request, options) {
    const { idempotencyKey = crypto.randomUUID() } = request;
    const onUnavailable = settings.checkOnUnavailable(request.onUnavailable ?? this.onUnavailable);
    this.#calls.checkApiKey(request.apiKey);
    checkIdempotencyKey(idempotencyKey);
    const prepared = prepareCharge(request, idempotencyKey);
    const charge = () => this.#charge(prepared, idempotencyKey, onUnavailable, options);
    if (!request.ask) return charge();
    const { apiKey, tool, amount, units } = request;
    const call = { apiKey, tool, amount, units };
    return askAndRetry(this.approvals, request.ask, call, charge, options);
  }

  async #charge(prepared, idempotencyKey, onUnavailable, options) {
    const { answer, isUnknown } = await this.#calls.retry(
      (limits) => this.#attempt(prepared, limits, options?.signal),
      options,
    );
    if (answer.charge) return answer.charge;
    const error = failed(answer, isUnknown, CHARGE, idempotencyKey);
    if (onUnavailable !== 'run_unpaid' || error.code !== 'service_unavailable') throw error;
    return { paid: false, code: error.code, error };
  }

  async batch(members, options) {
    const charges = prepare(BATCH, () => members.map(toSend));
    const asked = { method: 'POST', path: '/v1/charges/batch', body: { charges } };
    const effect = { ...BATCH, isDone: hasResults(charges.length, isResult) };
    try {
      const { results } = (await this.#calls.write(asked, effect, options)).json;
      return withKeys(results, charges);
    } catch (error) {
      const idempotencyKeys = charges.map((member) => member.idempotencyKey);
      throw Object.assign(error, { idempotencyKeys });
    }
  }

  async refund(request, options) {
    const members = settings.membersOf(request, REFUNDED);
    const { chargeId, idempotencyKey = crypto.randomUUID(), ...others } = members;
    const body = prepare(REFUND, () => {
      if (typeof chargeId !== 'string' || !CHARGE_ID.test(chargeId)) {
        throw createError('not_found', 'There is no such charge.', { param: 'chargeId' });
      }
      return { ...others, amount: amountToSend(others.amount) };
    });
    const path = `/v1/charges/${chargeId}/refund`;
    const asked = { method: 'POST', path, body, idempotencyKey };
    const { json, replayed } = await this.#calls.write(asked, REFUND, options);
    return { ...json, replayed };
  }

  async quote(request, options) {
    const body = settings.membersOf(request, ['tool', 'units']);
    body.units = prepare(READ, () => unitsToSend(body.units));
    const asked = { method: 'POST', path: '/v1/quote', body, isAnswer: hasAmount };
    return this.#calls.read(asked, options);
  }

  earnings(filter = {}, options) {
    const query = settings.membersOf(filter, ['tool', 'from', 'to', 'interval']);
    return this.#calls.get('/v1/earnings', query, options);
  }

  statement(month, options) {
    return this.#calls.get(`/v1/statements/${idInPath(month)}`, {}, options);
  }

  refusals(filter = {}, options) {
    return this.#calls.get('/v1/refusals', settings.membersOf(filter, ['hours']), options);
  }

  publicReceipt(receipt, options) {
    return publicReceipt(this.#calls, receipt, options);
  }

  async lease(options) {
    if (!CAN_SHARE_REQUESTS) {
      const message =
        'an edge runtime ends timers with the request, so a lease would not be settled';
      throw new TypeError(`Farebox: ${message}`);
    }
    settings.checkMembers('a lease', options, LEASE);
    return openLease(this.leases, settings.membersOf(options, LEASE));
  }

  withPrices(prices) {
    return new PricedFarebox(this, prices);
  }

  async verifyReceipt(receipt) {
    return verifyReceipt(this.#receiptKeys, receipt);
  }

  #attempt(prepared, limits, signal) {
    if (this.#coalescer) return this.#coalescer.send(prepared, limits, signal);
    return postCharge(this.#calls.transport, prepared, limits.timeoutMs, signal);
  }
}

/** A member of a batch, with a key of its own, so that the batch can be sent again. A release needs none. */
function toSend(given, n) {
  const { amount, units, ...member } = settings.membersOf(given, BATCHED);
  const { op = 'charge', idempotencyKey = crypto.randomUUID() } = member;
  if (op === 'release' && member.idempotencyKey === undefined) return { ...member, op };
  checkIdempotencyKey(idempotencyKey, `charges.${n}.idempotencyKey`);
  return {
    ...member,
    op,
    amount: amountToSend(amount, `charges.${n}.amount`),
    units: unitsToSend(units, `charges.${n}.units`),
    idempotencyKey,
  };
}

function hasReceiptKeys({ keys }) {
  return settings.areReceiptKeys(keys);
}

function hasAmount({ amount }) {
  return typeof amount === 'number';
}

function isResult(result) {
  return Number.isInteger(result?.status);
}

/**
 * The results of a batch; a failed one has the key of its member: it may be unknown whether that took effect, now or in
 * an attempt whose answer was lost.
 */
function withKeys(results, charges) {
  return results.map((result, n) => {
    const { idempotencyKey } = charges[n];
    return result.error && idempotencyKey ? { ...result, idempotencyKey } : result;
  });
}

class PricedFarebox {
  #farebox;
  #prices;

  constructor(farebox, prices) {
    this.#farebox = farebox;
    // A Map of own properties: `constructor` and `__proto__` have no price.
    this.#prices = new Map(Object.entries(prices));
    for (const [tool, price] of this.#prices) settings.checkPrice(tool, price);
  }

  async charge(request, options) {
    const amount = this.#prices.get(request.tool);
    if (amount === undefined) {
      throw createError('unknown_tool', `No price is set for the tool "${request.tool}".`, {
        param: 'tool',
      });
    }
    return this.#farebox.charge({ ...settings.membersOf(request, CHARGED), amount }, options);
  }
}
