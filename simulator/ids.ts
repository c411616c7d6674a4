/** Identifiers in Stripe's format: a prefix and random base62. */
import { randomInt } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const LENGTHS = {
  cs_test: 58,
  pi: 24,
  ch: 24,
  pm: 24,
  prv: 24,
  cus: 14,
  re: 24,
  seti: 24,
  issfr: 24,
  in: 24,
  il: 24,
  txr: 24,
  cn: 24,
  taxcalc: 24,
  dp: 24,
  evt: 24,
  txn: 24,
  req: 14,
} as const;

export function newId(prefix: keyof typeof LENGTHS): string {
  return `${prefix}_${randomText(LENGTHS[prefix])}`;
}

export function randomText(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
