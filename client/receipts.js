/**
 * Verifies receipts (specification section 2) offline: `hmac_sha256.<key id>.<payload>.<signature>`, signed over
 * everything before the last dot with a key that only Farebox and the developer have. Uses Web Crypto.
 */
import { CAN_SHARE_REQUESTS } from '#send';

// 32 bytes leave two bits of the last character unused. They must be zero, so that a receipt has one spelling.
const RECEIPT = /^(hmac_sha256\.(\d{1,4})\.([\w-]+))\.([\w-]{42}[AEIMQUYcgkosw048])$/;
const REFETCH_MS_MIN = 60_000;
const MICROS_PER_DOLLAR = 1_000_000;
const HMAC = { name: 'HMAC', hash: 'SHA-256' };
const ED25519 = { name: 'Ed25519' };
const NOT_VALID = Object.freeze({ valid: false, charge: null });

export async function verifyReceipt(keys, receipt) {
  const parts = typeof receipt === 'string' ? RECEIPT.exec(receipt) : null;
  if (parts === null) return NOT_VALID;
  const [, signed, keyId, payload, signature] = parts;
  const key = await keys.find(keyId);
  if (key === undefined) return NOT_VALID;
  // Compares in constant time.
  const isSigned = await crypto.subtle.verify(
    HMAC,
    key,
    bytesOf(signature),
    new TextEncoder().encode(signed),
  );
  const contents = isSigned ? contentsOf(payload) : undefined;
  return contents ? { valid: true, ...contents } : NOT_VALID;
}

// 64 bytes leave four bits of the last character unused.
const PUBLIC_RECEIPT = /^(ed25519\.(\d{1,4})\.([\w-]+))\.([\w-]{85}[AQgw])$/;

/**
 * Verifies a public receipt with only the `keys` of `GET /v1/receipts/public-keys`. Only Farebox can make one, not even
 * the developer can; so it is proof for the payer.
 */
export async function verifyPublicReceipt(keys, receipt) {
  const parts = typeof receipt === 'string' ? PUBLIC_RECEIPT.exec(receipt) : null;
  if (parts === null) return NOT_VALID;
  const [, signed, keyId, payload, signature] = parts;
  const jwk = keys.find(({ kid, crv }) => kid === keyId && crv === 'Ed25519');
  if (jwk === undefined) return NOT_VALID;
  const { kty, crv, x } = jwk;
  const key = await crypto.subtle.importKey('jwk', { kty, crv, x }, ED25519, false, ['verify']);
  const text = new TextEncoder().encode(signed);
  const isSigned = await crypto.subtle.verify(ED25519, key, bytesOf(signature), text);
  const contents = isSigned ? contentsOf(payload) : undefined;
  return contents ? { valid: true, ...contents } : NOT_VALID;
}

/** The same contents, signed for everybody. Repeating the request changes nothing. */
export async function publicReceipt(calls, receipt, options) {
  const asked = { method: 'POST', path: '/v1/receipts/public', body: { receipt } };
  const effect = { noun: 'public receipt', done: 'signed', isDone: hasReceipt };
  return (await calls.write(asked, effect, options)).json.receipt;
}

function hasReceipt({ receipt }) {
  return typeof receipt === 'string';
}

/** The developer's receipt keys, by id. */
export class ReceiptKeys {
  #load;
  #keys;
  #refetchedAt = -Infinity;
  #loading;

  /** `load` resolves with `[{ id, key }]`, as sent by the service. */
  constructor(load) {
    this.#load = load;
  }

  /** An unknown id may belong to a new key. The service is asked rarely, because anybody can invent ids. */
  async find(id) {
    if (this.#keys === undefined) {
      await this.#refresh();
    } else if (!this.#keys.has(id) && performance.now() - this.#refetchedAt >= REFETCH_MS_MIN) {
      await this.#refresh();
      this.#refetchedAt = performance.now();
    }
    return this.#keys.get(id);
  }

  /** One request for all concurrent callers, where they can share one. After a failure, the next caller tries again. */
  #refresh() {
    if (!CAN_SHARE_REQUESTS) return this.#import();
    this.#loading ??= this.#import().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #import() {
    const keys = (await this.#load()).map(async ({ id, key }) => [
      id,
      await crypto.subtle.importKey('raw', bytesOf(key), HMAC, false, ['verify']),
    ]);
    this.#keys = new Map(await Promise.all(keys));
  }
}

/** The charge or invocation in a payload, with the service's field names; undefined for anything else. */
function contentsOf(payload) {
  const contents = JSON.parse(new TextDecoder().decode(bytesOf(payload)));
  const { id, consumerId, developerId, tool, micros, createdAt, cardVersion, grantId } = contents;
  const livemode = contents.livemode !== false;
  if (typeof grantId === 'string') return { invocation: contents };
  if (typeof tool !== 'string' || !Number.isSafeInteger(micros)) return undefined;
  const amount = micros / MICROS_PER_DOLLAR;
  const priced = cardVersion !== undefined && { cardVersion };
  return { charge: { id, consumerId, developerId, tool, amount, createdAt, ...priced, livemode } };
}

function bytesOf(base64url) {
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
