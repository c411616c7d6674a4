/** Idempotency keys: printable ASCII of 1 to 255 characters, compared byte by byte. */

const FORM = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/** The same in words. */
export const KEY_FORM = '1 to 255 printable ASCII characters, without spaces at either end';

export function isIdempotencyKey(text: string): boolean {
  return FORM.test(text);
}
