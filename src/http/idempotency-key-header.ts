/** The `Idempotency-Key` header: visible ASCII of 1 to 255 characters, compared as it is, sent once. */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../domain/errors.ts';

const FORM = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

export function idempotencyKeyOf(request: IncomingMessage): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  // node joins repeated headers by a comma; only then is the costlier look needed.
  const isRepeated =
    Array.isArray(key) ||
    (key.includes(',') && (request.headersDistinct['idempotency-key']?.length ?? 0) > 1);
  if (isRepeated) throw invalid();
  return checkedKey(key);
}

/** The key itself, when it has the form that a key must have. */
export function checkedKey(key: string): string {
  if (!FORM.test(key)) throw invalid();
  return key;
}

function invalid(): ApiError {
  return new ApiError(
    'invalid_idempotency_key',
    'An idempotency key is 1 to 255 visible ASCII characters, sent once.',
  );
}
