/** The `Idempotency-Key` header, sent once. */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../domain/errors.ts';
import { isIdempotencyKey, KEY_FORM } from '../domain/idempotency-key.ts';

export function idempotencyKeyOf(request: IncomingMessage): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  // Node joins repeated headers with a comma, so only a comma makes the costlier check necessary.
  const isRepeated =
    Array.isArray(key) ||
    (key.includes(',') && (request.headersDistinct['idempotency-key']?.length ?? 0) > 1);
  if (isRepeated) throw invalid();
  return checkedKey(key);
}

/** Returns the key if its form is valid; throws otherwise. */
export function checkedKey(key: string): string {
  if (!isIdempotencyKey(key)) throw invalid();
  return key;
}

function invalid(): ApiError {
  return new ApiError(
    'invalid_idempotency_key',
    `An idempotency key is ${KEY_FORM}. Send it once.`,
  );
}
