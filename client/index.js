/**
 * Charges a consumer for a tool call through Farebox (specification section 4.3). The tool may run
 * when charge() resolves with `paid: true`. One charge() has one idempotency key for all of its
 * attempts, so it takes the money at most once, whatever the network does. index.d.ts documents all.
 */
import { createError } from './errors.js';

export {
  FareboxError,
  InsufficientBalanceError,
  InvalidApiKeyError,
  ServiceUnavailableError,
} from './errors.js';
export { serviceKeyOf } from './service-key.js';

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 2_000;
const IDEMPOTENCY_KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;
const MICROS_PER_DOLLAR = 1_000_000;
const CHARGE_DOLLARS_MAX = 1_000_000;

// The connection was never made, so the request was never sent. After any other network error it may
// have been.
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

export class Farebox {
  #secretKey;
  #url;
  #timeoutMs;
  #maxRetries;
  #onUnavailable;

  constructor(options = {}) {
    const env = globalThis.process?.env ?? {};
    this.#secretKey = checkSecretKey(options.secretKey ?? env.FAREBOX_SECRET_KEY);
    this.#url = chargesUrl(options.baseUrl ?? env.FAREBOX_URL);
    this.#timeoutMs = checkInteger('timeoutMs', options.timeoutMs ?? 5_000, 1);
    this.#maxRetries = checkInteger('maxRetries', options.maxRetries ?? 2, 0);
    this.#onUnavailable = checkOnUnavailable(options.onUnavailable ?? 'fail');
  }

  async charge(request) {
    const { apiKey, tool, amount, metadata } = request;
    const onUnavailable = checkOnUnavailable(request.onUnavailable ?? this.#onUnavailable);
    const idempotencyKey = request.idempotencyKey ?? crypto.randomUUID();
    // What JSON or a header cannot carry is refused here; all else is the service's to decide.
    if (typeof apiKey !== 'string' || apiKey === '') {
      throw createError('invalid_api_key', 'The consumer key is missing.', { param: 'apiKey' });
    }
    if (amount !== undefined && !Number.isFinite(amount)) {
      throw createError('invalid_amount', 'The amount is not a number.', { param: 'amount' });
    }
    if (typeof idempotencyKey !== 'string' || !IDEMPOTENCY_KEY.test(idempotencyKey)) {
      const message = 'An idempotency key has 1 to 255 visible ASCII characters.';
      throw createError('invalid_idempotency_key', message, { param: 'idempotencyKey' });
    }

    const body = JSON.stringify({ apiKey, tool, amount, metadata });
    try {
      return await this.#send(body, idempotencyKey);
    } catch (error) {
      if (onUnavailable !== 'run_unpaid' || error.code !== 'service_unavailable') throw error;
      return { paid: false, code: error.code, error };
    }
  }

  withPrices(prices) {
    return new PricedFarebox(this, prices);
  }

  /** Attempts until there is an answer that a retry would not change, or no time for another. */
  async #send(body, idempotencyKey) {
    const deadline = performance.now() + this.#timeoutMs * (this.#maxRetries + 1);
    let outcome = 'not_charged';
    for (let retries = 0; ; retries += 1) {
      const leftMs = Math.max(1, Math.ceil(deadline - performance.now()));
      const answer = await this.#attempt(body, idempotencyKey, Math.min(this.#timeoutMs, leftMs));
      if (answer.charge) return answer.charge;
      // A charge whose answer was lost stays unknown, until an answer that looked the key up: 402 and
      // 422 do, but a revoked key or a full queue is refused before.
      if (answer.unknown) outcome = 'unknown';
      else if (answer.status === 402 || answer.status === 422) outcome = 'not_charged';
      const waitMs = Math.max(backoffMs(retries), answer.retryAfterMs ?? 0);
      const mayRetry = retries < this.#maxRetries && performance.now() + waitMs < deadline;
      if (!answer.retryable || !mayRetry) throw errorOf(answer, outcome, idempotencyKey);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  async #attempt(body, idempotencyKey, timeoutMs) {
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${this.#secretKey}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': idempotencyKey,
        },
        body,
        // A redirect would take the consumer's key to another address.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      return readAnswer(response, await response.text());
    } catch (cause) {
      const unknown = !NEVER_SENT.has(cause.cause?.code);
      return { unknown, retryable: true, cause, reason: reasonOf(cause) };
    }
  }
}

class PricedFarebox {
  #farebox;
  #prices;

  constructor(farebox, prices) {
    this.#farebox = farebox;
    // A Map of own properties: `constructor` and `__proto__` have no price.
    this.#prices = new Map(Object.entries(prices));
    for (const [tool, price] of this.#prices) checkPrice(tool, price);
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

/** What an HTTP answer means. Only a body in Farebox's own shape counts as Farebox speaking. */
function readAnswer(response, text) {
  const { status, headers } = response;
  const json = parseJson(text);
  if (response.ok && typeof json?.receipt === 'string' && typeof json.id === 'string') {
    const replayed = headers.get('idempotency-replayed') === 'true';
    return { charge: { ...json, replayed, paid: true } };
  }
  const error = typeof json?.error?.code === 'string' ? json.error : undefined;
  const didNothing = status === 503 ? error !== undefined : status >= 300 && status < 500;
  const unknown = status === 409 || !didNothing;
  return {
    status,
    error,
    unknown,
    retryable: unknown || status === 429 || status === 503,
    retryAfterMs: retryAfterMs(headers.get('retry-after')),
    reason: `status ${status}${error ? `, ${error.code}` : ''}`,
  };
}

function errorOf({ status, error, unknown, reason, cause }, outcome, idempotencyKey) {
  const facts = { ...error, status, outcome, idempotencyKey };
  if (error !== undefined && !unknown && status !== 503) {
    return createError(error.code, error.message ?? error.code, facts, cause);
  }
  const message =
    outcome === 'unknown'
      ? 'Farebox gave no answer, so the charge may have been made; the same idempotencyKey tells'
      : 'Farebox cannot be reached, nothing was charged';
  return createError('service_unavailable', `${message} (${reason}).`, facts, cause);
}

function reasonOf(cause) {
  if (cause.name === 'TimeoutError') return 'timed out';
  return cause.cause?.code ?? cause.cause?.message ?? cause.message;
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Doubles from 100 ms to 2 s; half of it random, so that callers refused together come back apart. */
function backoffMs(retries) {
  const ceiling = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** retries);
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}

/** `Retry-After` as seconds or as a date. */
function retryAfterMs(value) {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : ms;
}

// Settings are checked once, when a mistake is cheap. No message shows a key: fetch's own would.

function checkSecretKey(value) {
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new TypeError('Farebox: set FAREBOX_SECRET_KEY, or pass secretKey, to your secret key');
}

function chargesUrl(baseUrl) {
  const url = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new TypeError('Farebox: set FAREBOX_URL, or pass baseUrl, to the http(s) URL of Farebox');
  }
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/charges`;
  url.search = url.hash = '';
  return url;
}

function checkInteger(name, value, min) {
  // Beyond 2^31 - 1 a timer fires at once.
  if (Number.isInteger(value) && value >= min && value < 2 ** 31) return value;
  throw new TypeError(`Farebox: ${name} must be an integer of at least ${min}`);
}

function checkOnUnavailable(value) {
  if (value === 'fail' || value === 'run_unpaid') return value;
  throw new TypeError("Farebox: onUnavailable must be 'fail' or 'run_unpaid'");
}

function checkPrice(tool, price) {
  const micros = Math.round(price * MICROS_PER_DOLLAR);
  const exact = typeof price === 'number' && micros / MICROS_PER_DOLLAR === price;
  if (exact && price > 0 && price <= CHARGE_DOLLARS_MAX) return;
  throw new RangeError(
    `Farebox: the price of "${tool}" must be a number of dollars above 0, ` +
      'at most 1,000,000, with at most six decimals',
  );
}
