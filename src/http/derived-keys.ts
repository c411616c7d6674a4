/**
 * Keys for a request with an idempotency key. A key is stored as a hash and nothing else, so it is derived from the
 * master secret and the request, and a retry can show it again. The idempotency key is not stored either: the
 * database and the master secret together do not give the key away.
 */
import { hkdfSync } from 'node:crypto';
import { composeKey, type KeyKind } from '../domain/api-keys.ts';
import type { Mode } from '../domain/mode.ts';
import { hashOfKey, newKey } from '../store/accounts/api-keys.ts';
import type { Repeatable } from './repeated-requests.ts';
import type { Api } from './services.ts';

/** More than a key needs: some bytes are skipped. */
const KEY_BYTES = 128;

export interface KeyToShow {
  readonly kind: KeyKind;
  readonly mode: Mode;
  /** The owner and the sort of the key, so that no other caller's request derives the same key. */
  readonly owner: string;
}

/** Random without a retry to recognize. */
export function freshKey(
  { config, keyPrefix }: Api,
  asked: KeyToShow,
  retry: Repeatable | undefined,
): string {
  const { active, all } = config.masterSecrets;
  const secret = all.get(active);
  return retry && secret !== undefined
    ? derivedKey(keyPrefix, secret, asked, retry)
    : newKey(keyPrefix, asked.kind, asked.mode);
}

/** The key with this hash, as an earlier request made it. Undefined when its master secret was removed. */
export function knownKey(
  { config, keyPrefix }: Api,
  asked: KeyToShow,
  retry: Repeatable,
  keyHash: string,
): string | undefined {
  return [...config.masterSecrets.all.values()]
    .map((secret) => derivedKey(keyPrefix, secret, asked, retry))
    .find((key) => hashOfKey(key) === keyHash);
}

function derivedKey(
  prefix: string,
  secret: string,
  { kind, mode, owner }: KeyToShow,
  { idempotencyKey, requestHash }: Repeatable,
): string {
  const info = `farebox ${owner} ${requestHash} ${idempotencyKey}`;
  const bytes = new Uint8Array(hkdfSync('sha256', secret, '', info, KEY_BYTES));
  return composeKey(prefix, kind, bytes, mode);
}
