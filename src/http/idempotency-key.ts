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
  if (isRepeated || !FORM.test(key)) {
    throw new ApiError(
      'invalid_idempotency_key',
      'Idempotency-Key must be one header of 1 to 255 visible ASCII characters.',
    );
  }
  return key;
}
