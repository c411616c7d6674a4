/** Requests that may be repeated with the same Idempotency-Key, and get the same answer. */
import { hash } from 'node:crypto';
import { ApiError } from '../domain/errors.ts';
import type { Retry } from '../store/retry.ts';

/** Undefined without an idempotency key. Each scope has idempotency keys of its own. */
export function retryOf(
  scope: string,
  idempotencyKey: string | undefined,
  asked: object,
): Retry | undefined {
  if (idempotencyKey === undefined) return undefined;
  return {
    keyHash: hash('sha256', `${scope} ${idempotencyKey}`),
    requestHash: hash('sha256', JSON.stringify(asked)),
  };
}

export function keyReused(): ApiError {
  return new ApiError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for a request with another body; a new request needs a new key.',
  );
}
