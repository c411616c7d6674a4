/** Finds a key's owner by the key's hash, in memory first. */
import { hash } from 'node:crypto';
import { KEY_LENGTH_MAX, kindOfKey } from '../domain/api-keys.ts';
import { findChangedKeyHashes, findKeyOwners, type KeyOwner } from '../store/accounts/api-keys.ts';
import type { Database } from '../store/database.ts';
import { FreshCache } from './fresh-cache.ts';
import { KEYS_CACHED_MAX } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';

export interface KeyDeps {
  readonly keyPrefix: string;
  readonly keys: FreshCache<KeyOwner>;
}

export function createKeyCache(
  database: Database,
  onError: (error: unknown) => void,
): FreshCache<KeyOwner> {
  return new FreshCache<KeyOwner>({
    entriesMax: KEYS_CACHED_MAX,
    load: async (hashes) => {
      const owners = await findKeyOwners(database, hashes);
      return new Map(owners.map((owner) => [owner.hash, owner]));
    },
    findChanged: () => findChangedKeyHashes(database),
    onError,
  });
}

/** Undefined unless the key has this kind and is active. A malformed key never reaches the database. */
export function findKeyOwner(
  deps: KeyDeps,
  key: string,
  kind: KeyOwner['kind'],
): MaybePromise<KeyOwner | undefined> {
  if (key.length > KEY_LENGTH_MAX) return undefined;
  const hashed = hash('sha256', key);
  const known = deps.keys.peek(hashed);
  if (known) return ifActive(known, kind);
  if (kindOfKey(deps.keyPrefix, key) !== kind) return undefined;
  return deps.keys.load(hashed).then((owner) => owner && ifActive(owner, kind));
}

function ifActive(owner: KeyOwner, kind: KeyOwner['kind']): KeyOwner | undefined {
  const isExpired = owner.expiresAt !== null && Date.parse(owner.expiresAt) <= Date.now();
  return owner.kind === kind && !isExpired ? owner : undefined;
}
