/** Settings are checked once, when a mistake is cheap. No message shows a key: fetch's own would. */

const MICROS_PER_DOLLAR = 1_000_000;
const CHARGE_DOLLARS_MAX = 1_000_000;

export function checkSecretKey(value) {
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new TypeError('Farebox: set FAREBOX_SECRET_KEY, or pass secretKey, to your secret key');
}

/** Without a slash at its end. */
export function checkBaseUrl(value) {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new TypeError('Farebox: set FAREBOX_URL, or pass baseUrl, to the http(s) URL of Farebox');
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

export function checkInteger(name, value, min) {
  // Beyond 2^31 - 1 a timer fires at once.
  if (Number.isInteger(value) && value >= min && value < 2 ** 31) return value;
  throw new TypeError(`Farebox: ${name} must be an integer of at least ${min}`);
}

export function checkOnUnavailable(value) {
  if (value === 'fail' || value === 'run_unpaid') return value;
  throw new TypeError("Farebox: onUnavailable must be 'fail' or 'run_unpaid'");
}

export function checkCoalesce(value) {
  if (typeof value === 'boolean') return value;
  throw new TypeError('Farebox: coalesce must be true or false');
}

export function checkReceiptKeys(value) {
  if (Array.isArray(value) && value.every(isReceiptKey)) return value;
  throw new TypeError('Farebox: receiptKeys must be the `keys` of GET /v1/receipts/keys');
}

function isReceiptKey(item) {
  return typeof item?.id === 'string' && /^[\w-]{43}$/.test(item.key);
}

export function checkPrice(tool, price) {
  const micros = Math.round(price * MICROS_PER_DOLLAR);
  const exact = typeof price === 'number' && micros / MICROS_PER_DOLLAR === price;
  if (exact && price > 0 && price <= CHARGE_DOLLARS_MAX) return;
  throw new RangeError(
    `Farebox: the price of "${tool}" must be a number of dollars above 0, ` +
      'at most 1,000,000, with at most six decimals',
  );
}
