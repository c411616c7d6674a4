/** Checks settings once, early, when a mistake is cheap. No message shows a key, as fetch's own would. */
import { amountToSend, exactMicrosOf } from './money.js';

const CHARGE_MICROS_MAX = 1_000_000_000_000;

/** A key's prefix shows its kind, so a mix-up is detected when the client is created. */
export function checkSecretKey(value) {
  if (/^[a-z]{2,12}_ck_/.test(value)) {
    throw new TypeError(
      'Farebox: FAREBOX_SECRET_KEY or secretKey is a consumer key, not a secret key',
    );
  }
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new TypeError('Farebox: set FAREBOX_SECRET_KEY, or pass secretKey, to your secret key');
}

export function checkConsumerKey(value) {
  if (/^[a-z]{2,12}_sk_/.test(value)) {
    throw new TypeError(
      'Farebox: FAREBOX_CONSUMER_KEY or consumerKey is a secret key, not a consumer key',
    );
  }
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new TypeError(
    'Farebox: set FAREBOX_CONSUMER_KEY, or pass consumerKey, to your consumer key',
  );
}

/** Returns the URL without a trailing slash. */
export function checkBaseUrl(value) {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new TypeError('Farebox: set FAREBOX_URL, or pass baseUrl, to the http(s) URL of Farebox');
  }
  const base = url.origin + url.pathname.replace(/\/+$/, '');
  if (!base.endsWith('/v1')) return base;
  const right = base.slice(0, -'/v1'.length);
  throw new TypeError(`Farebox: write ${right} in FAREBOX_URL or baseUrl, without /v1`);
}

/** Beyond it, a timer fires at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

export function checkInteger(name, value, min, max = TIMER_MS_MAX) {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new TypeError(`Farebox: ${name} must be an integer from ${min} to ${max}`);
}

/**
 * Refuses a member that nothing would read: with a misspelled or misplaced `amount` or `idempotencyKey`, a call would
 * do something else than its caller wants. Where the body of the API is closed, the API refuses such members itself.
 */
export function checkMembers(what, value, known) {
  const other = Object.keys(value).find(
    (name) => !known.includes(name) && value[name] !== undefined,
  );
  if (other === undefined) return;
  throw new TypeError(`Farebox: ${other} is not a member of ${what} (${known.join(', ')})`);
}

/**
 * The same for options, which callers may leave to others: an AbortController and a Request have a signal, and an event
 * passes its own arguments to a listener such as `close()`. Only what is written as options is checked.
 */
export function checkOptions(what, options, known) {
  if (typeof options !== 'object' || options === null) return;
  const prototype = Object.getPrototypeOf(options);
  if (prototype === Object.prototype || prototype === null) checkMembers(what, options, known);
}

/**
 * A copy of a request, filter or settings: the known members by name, because they may be getters or inherited, and
 * the object's own other members, for the API to refuse.
 */
export function membersOf(given, known) {
  const members = { ...given };
  for (const name of known) {
    if (!Object.hasOwn(members, name)) members[name] = given[name];
  }
  return members;
}

export function checkOnUnavailable(value) {
  if (value === 'fail' || value === 'run_unpaid') return value;
  throw new TypeError("Farebox: onUnavailable must be 'fail' or 'run_unpaid'");
}

export function checkOnError(value) {
  if (typeof value === 'function') return value;
  throw new TypeError('Farebox: onError must be a function');
}

export function checkCoalesce(value) {
  if (typeof value === 'boolean') return value;
  throw new TypeError('Farebox: coalesce must be true or false');
}

export function checkFetch(value) {
  if (value === undefined || typeof value === 'function') return value;
  throw new TypeError('Farebox: fetch must be a function that is called as fetch is');
}

export function checkReceiptKeys(value) {
  if (areReceiptKeys(value)) return value;
  throw new TypeError('Farebox: receiptKeys must be the `keys` of GET /v1/receipts/keys');
}

export function areReceiptKeys(value) {
  return Array.isArray(value) && value.every(isReceiptKey);
}

function isReceiptKey(item) {
  return typeof item?.id === 'string' && /^[\w-]{43}$/.test(item.key);
}

export function checkPrice(tool, price) {
  const micros = microsOf(price);
  if (micros > 0 && micros <= CHARGE_MICROS_MAX) return;
  throw new RangeError(
    `Farebox: the price of "${tool}" is ${String(price)}. It must be more than $0 and at most $1,000,000, ` +
      "with at most six decimals: a number, a decimal string such as '0.02', or usd()",
  );
}

function microsOf(price) {
  try {
    return exactMicrosOf(amountToSend(price));
  } catch {
    return Number.NaN;
  }
}
