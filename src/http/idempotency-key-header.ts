/** The `Idempotency-Key` header: printable ASCII of 1 to 255 characters, compared byte by byte, sent once. */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../domain/errors.ts';

const FORM = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/** The same in words. */
export const KEY_FORM = '1 to 255 printable ASCII characters, without spaces at either end';

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
  if (!FORM.test(key)) throw invalid();
  return key;
}

function invalid(): ApiError {
  return new ApiError(
    'invalid_idempotency_key',
    `An idempotency key is ${KEY_FORM}. Send it once.`,
  );
}
