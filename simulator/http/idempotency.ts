/**
 * Idempotency keys, as on Stripe: the same key and parameters give the first answer again, byte for byte, even an
 * error; other parameters are refused; a second request while the first runs gives 409. An answer is stored in the
 * transaction that it reports, so no crash separates the two. Keys expire after a day.
 */
import { hash } from 'node:crypto';
import { ApiError } from './errors.ts';
import type { KeptAnswer, Store } from '../store.ts';

export const KEPT_MS = 24 * 60 * 60 * 1_000;
const KEY_LENGTH_MAX = 255;

export class IdempotencyKeys {
  readonly #store: Store;
  readonly #running = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The key's stored answer. `undefined` when the key is new; then the caller holds it until `release`. */
  claim(key: string, fingerprint: string): KeptAnswer | undefined {
    if (key.length > KEY_LENGTH_MAX) {
      const message = `Idempotency keys can be up to ${KEY_LENGTH_MAX} characters long.`;
      throw new ApiError(400, { type: 'invalid_request_error', message }, true);
    }
    if (this.#running.has(key)) throw inUse(key);
    const kept = this.#store.answerUnder(key);
    if (kept && kept.fingerprint !== fingerprint) throw otherParameters(key);
    if (!kept) this.#running.add(key);
    return kept;
  }

  keep(key: string, answer: KeptAnswer): void {
    this.#store.keepAnswer(key, answer, Date.now());
  }

  release(key: string): void {
    this.#running.delete(key);
  }
}

/** Equal for the same path and parameters, in any order. */
export function fingerprintOf(path: string, body: string): string {
  const params = new URLSearchParams(body);
  params.sort();
  return hash('sha256', `${path}?${params.toString()}`);
}

function inUse(key: string): ApiError {
  return new ApiError(
    409,
    {
      type: 'idempotency_error',
      code: 'idempotency_key_in_use',
      message:
        'There is currently another in-progress request using this Idempotent Key (that probably means ' +
        `you submitted twice, and the other request is still going through): ${key}. Please try again later.`,
    },
    true,
  );
}

function otherParameters(key: string): ApiError {
  return new ApiError(
    400,
    {
      type: 'idempotency_error',
      message:
        'Keys for idempotent requests can only be used with the same parameters they were first used with. ' +
        `Try using a key other than '${key}' if you meant to execute a different request.`,
    },
    true,
  );
}
