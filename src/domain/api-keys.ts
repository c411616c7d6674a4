/**
 * The shape of keys (specification section 5): `fare_ck_live_…` consumer, `fare_sk_live_…` developer secret,
 * `fare_sk_…` legacy caller; `fare_ck_test_…` and `fare_sk_test_…` in test mode. The random part is 32 base62
 * characters (190 bits), the last six a CRC-32 over all before, so scanners recognize a leaked key and a mistyped key
 * never reaches the database.
 */
import type { Mode } from './mode.ts';

export type KeyKind = 'consumer' | 'developer' | 'legacy';

/** Legacy keys move no money, so they have no test mode. */
const INFIXES: readonly (readonly [infix: string, kind: KeyKind, mode: Mode])[] = [
  ['ck_live_', 'consumer', 'live'],
  ['sk_live_', 'developer', 'live'],
  ['ck_test_', 'consumer', 'test'],
  ['sk_test_', 'developer', 'test'],
  ['sk_', 'legacy', 'live'],
];
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
/** No key is longer. Limits the work that an unauthenticated request can cause. */
export const KEY_LENGTH_MAX = 100;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const TAIL = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

/** Builds a key from random bytes. Skips bytes of 248 and above, so all characters are equally likely. */
export function composeKey(prefix: string, kind: KeyKind, random: Uint8Array, mode: Mode): string {
  const infix = INFIXES.find(([, ofKind, ofMode]) => ofKind === kind && ofMode === mode)?.[0];
  if (infix === undefined) throw new RangeError(`there are no ${kind} keys in ${mode} mode`);
  let text = '';
  for (const byte of random) {
    if (text.length === RANDOM_LENGTH) break;
    if (byte < 248) text += BASE62[byte % 62];
  }
  if (text.length < RANDOM_LENGTH) throw new RangeError('too few random bytes for a key');
  const body = `${prefix}_${infix}${text}`;
  return body + checksum(body);
}

/** The kind of a well-formed key, or `undefined` for anything else. */
export function kindOfKey(prefix: string, key: string): KeyKind | undefined {
  if (key.length > KEY_LENGTH_MAX || !key.startsWith(`${prefix}_`)) return undefined;
  const rest = key.slice(prefix.length + 1);
  for (const [infix, kind] of INFIXES) {
    if (!rest.startsWith(infix) || !TAIL.test(rest.slice(infix.length))) continue;
    const body = key.slice(0, -CHECKSUM_LENGTH);
    return checksum(body) === key.slice(-CHECKSUM_LENGTH) ? kind : undefined;
  }
  return undefined;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let out = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    out = BASE62[rest % 62] + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) {
    value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return value;
});

function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i += 1) {
    crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
