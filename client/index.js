/**
 * Charges a consumer for a tool call through Farebox (specification section 4.3). The tool may run
 * when charge() resolves with `paid: true`. One charge() has one idempotency key for all of its
 * attempts, so it takes the money at most once, whatever the network does. index.d.ts documents all.
 */
import { postCharge, postCharges, prepareCharge } from './charge-requests.js';
import { Coalescer } from './coalescer.js';
import { createError, errorOf } from './errors.js';
import { ReceiptKeys, verifyReceipt } from './receipts.js';
import { postRefund } from './refund-requests.js';
import { retry } from './retry.js';
import * as settings from './settings.js';
import { failureOf, Transport } from './transport.js';

export {
  FareboxError,
  InsufficientBalanceError,
  InvalidApiKeyError,
  ServiceUnavailableError,
} from './errors.js';
export { verifyPublicReceipt } from './receipts.js';
export { serviceKeyOf } from './service-key.js';

const IDEMPOTENCY_KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;
const CHARGE_ID = /^chg_[0-9a-f]+$/;

export class Farebox {
  #transport;
  #timeoutMs;
  #maxRetries;
  #onUnavailable;
  #coalescer;
  #receiptKeys;

  constructor(options = {}) {
    const env = globalThis.process?.env ?? {};
    this.#transport = new Transport(
      settings.checkBaseUrl(options.baseUrl ?? env.FAREBOX_URL),
      settings.checkSecretKey(options.secretKey ?? env.FAREBOX_SECRET_KEY),
    );
    this.#timeoutMs = settings.checkInteger('timeoutMs', options.timeoutMs ?? 5_000, 1);
    this.#maxRetries = settings.checkInteger('maxRetries', options.maxRetries ?? 2, 0);
    this.#onUnavailable = settings.checkOnUnavailable(options.onUnavailable ?? 'fail');
    if (settings.checkCoalesce(options.coalesce ?? true)) {
      this.#coalescer = new Coalescer(
        postCharges.bind(undefined, this.#transport),
        this.#timeoutMs,
      );
    }
    const keys = options.receiptKeys && settings.checkReceiptKeys(options.receiptKeys);
    this.#receiptKeys = new ReceiptKeys(async () => keys ?? this.#fetchReceiptKeys());
  }

  async charge(request) {
    const { apiKey } = request;
    const onUnavailable = settings.checkOnUnavailable(request.onUnavailable ?? this.#onUnavailable);
    const idempotencyKey = request.idempotencyKey ?? crypto.randomUUID();
    if (typeof apiKey !== 'string' || apiKey === '') {
      throw createError('invalid_api_key', 'The consumer key is missing.', { param: 'apiKey' });
    }
    checkSendable(request.amount, idempotencyKey);

    const prepared = prepareCharge(request, idempotencyKey);
    const { answer, outcome } = await this.#retry((leftMs) => this.#attempt(prepared, leftMs));
    if (answer.charge) return answer.charge;
    const unavailable =
      outcome === 'unknown'
        ? 'Farebox gave no answer, so the charge may have been made; the same idempotencyKey tells'
        : 'Farebox cannot be reached, nothing was charged';
    const error = errorOf(answer, unavailable, { outcome, idempotencyKey });
    if (onUnavailable !== 'run_unpaid' || error.code !== 'service_unavailable') throw error;
    return { paid: false, code: error.code, error };
  }

  async refund({ chargeId, amount, idempotencyKey = crypto.randomUUID() }) {
    if (typeof chargeId !== 'string' || !CHARGE_ID.test(chargeId)) {
      throw createError('not_found', 'There is no charge of this id.', { param: 'chargeId' });
    }
    checkSendable(amount, idempotencyKey);
    const asked = { chargeId, amount, idempotencyKey };
    const { answer, outcome } = await this.#retry((leftMs) =>
      postRefund(this.#transport, asked, Math.min(this.#timeoutMs, leftMs)),
    );
    if (answer.refund) return answer.refund;
    // Before it says that this is too much, the service has looked for a refund under this key.
    const isUnknown = outcome === 'unknown' && answer.error?.code !== 'refund_exceeds_charge';
    const unavailable = isUnknown
      ? 'Farebox gave no answer, so the refund may have been made; the same idempotencyKey tells'
      : 'Farebox cannot be reached, nothing was refunded';
    const facts = { outcome: isUnknown ? outcome : 'not_refunded', idempotencyKey };
    throw errorOf(answer, unavailable, facts);
  }

  withPrices(prices) {
    return new PricedFarebox(this, prices);
  }

  async verifyReceipt(receipt) {
    return verifyReceipt(this.#receiptKeys, receipt);
  }

  #retry(attempt) {
    return retry(attempt, { timeoutMs: this.#timeoutMs, maxRetries: this.#maxRetries });
  }

  #attempt(prepared, leftMs) {
    if (this.#coalescer) return this.#coalescer.send(prepared, leftMs);
    return postCharge(this.#transport, prepared, Math.min(this.#timeoutMs, leftMs));
  }

  async #fetchReceiptKeys() {
    const { answer } = await this.#retry(async (leftMs) => {
      const timeoutMs = Math.min(this.#timeoutMs, leftMs);
      const response = await this.#transport.request('/v1/receipts/keys', { timeoutMs });
      const keys = response.status === 200 ? response.json?.keys : undefined;
      return Array.isArray(keys) ? { keys } : failureOf(response);
    });
    if (answer.keys) return answer.keys;
    throw errorOf(answer, 'The receipt keys cannot be fetched');
  }
}

/** What JSON or a header cannot carry is refused here; all else is the service's to decide. */
function checkSendable(amount, idempotencyKey) {
  if (amount !== undefined && !Number.isFinite(amount)) {
    throw createError('invalid_amount', 'The amount is not a number.', { param: 'amount' });
  }
  if (typeof idempotencyKey !== 'string' || !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    const message = 'An idempotency key has 1 to 255 visible ASCII characters.';
    throw createError('invalid_idempotency_key', message, { param: 'idempotencyKey' });
  }
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

  async charge(request) {
    const amount = this.#prices.get(request.tool);
    if (amount === undefined) {
      throw createError('unknown_tool', `No price is set for the tool "${request.tool}".`, {
        param: 'tool',
      });
    }
    return this.#farebox.charge({ ...request, amount });
  }
}
