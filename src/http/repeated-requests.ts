/** Requests that may be repeated with the same Idempotency-Key, and get the same answer. */
import { hash } from 'node:crypto';
import { ApiError } from '../domain/errors.ts';
import type { RepeatedRequest } from '../store/repeated-request.ts';

/** With the idempotency key itself, which is not stored. */
export interface Repeatable extends RepeatedRequest {
  readonly idempotencyKey: string;
}

/** Undefined without an idempotency key. Each scope has idempotency keys of its own. */
export function retryOf(
  scope: string,
  idempotencyKey: string | undefined,
  asked: object,
): Repeatable | undefined {
  if (idempotencyKey === undefined) return undefined;
  return {
    idempotencyKey,
    keyHash: hash('sha256', `${scope} ${idempotencyKey}`),
    requestHash: requestHashOf(asked),
  };
}

/** SHA-256, as hex, of what was asked for, in the order of its members. Rows keep it, so it may never change. */
export function requestHashOf(asked: object): string {
  return hash('sha256', JSON.stringify(asked));
}

export function keyReused(
  message = 'This Idempotency-Key was used for a request with another body; a new request needs a new key.',
): ApiError {
  return new ApiError('idempotency_key_reused', message);
}

/** What the first request made was derived from a master secret that is not in the settings any more. */
export function cannotShowAgain(what: 'key' | 'secret' = 'key'): ApiError {
  return keyReused(
    `The ${what} that this request made cannot be shown again: the master secret behind it has been removed. ` +
      'Use a new Idempotency-Key to make another.',
  );
}
