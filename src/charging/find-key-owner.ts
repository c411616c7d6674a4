/** Finds a key's owner by the key's hash, in memory first. */
import { KEY_LENGTH_MAX, kindOfKey, type KeyKind } from '../domain/api-keys.ts';
import { findKeyOwners, type KeyOwner, hashOfKey } from '../store/accounts/api-keys.ts';
import type { Database } from '../store/database.ts';
import type { DatabaseClock } from './database-clock.ts';
import { FreshCache } from './fresh-cache.ts';
import { KEYS_CACHED_MAX } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { RecentChanges } from './recent-changes.ts';
import { SharedParts } from './shared-parts.ts';

export interface KeyDeps {
  readonly keyPrefix: string;
  readonly keys: FreshCache<KeyOwner>;
  readonly clock: DatabaseClock;
}

export function createKeyCache(database: Database, changes: RecentChanges): FreshCache<KeyOwner> {
  const shared = new SharedParts();
  return new FreshCache<KeyOwner>({
    entriesMax: KEYS_CACHED_MAX,
    load: async (hashes) => {
      const owners = await findKeyOwners(database, hashes);
      return new Map(owners.map((owner) => [owner.hash, shared.of(owner)]));
    },
    changes,
    keyOf: ({ kind, name }) => (kind === 'key' ? name : undefined),
  });
}

/** `payer`: a key that can be charged, which is a consumer key of the account or a spend key. */
export type KeyUse = KeyKind | 'payer';

/**
 * Undefined unless the key is active and has this use. A malformed key never reaches the database. A spend key can
 * only pay: it is refused wherever a consumer key is required.
 */
export function findKeyOwner(
  deps: KeyDeps,
  key: string,
  use: KeyUse,
): MaybePromise<KeyOwner | undefined> {
  if (key.length > KEY_LENGTH_MAX) return undefined;
  const hashed = hashOfKey(key);
  const known = deps.keys.peek(hashed);
  if (known) return ifActive(deps, known, use);
  if (kindOfKey(deps.keyPrefix, key) !== (use === 'payer' ? 'consumer' : use)) return undefined;
  return deps.keys.load(hashed).then((owner) => owner && ifActive(deps, owner, use));
}

/**
 * By Postgres' clock, which stored the expiry, so that a key ends in all processes at once. It is read only
 * for a key that expires.
 */
function ifActive(
  { clock }: Pick<KeyDeps, 'clock'>,
  owner: KeyOwner,
  use: KeyUse,
): KeyOwner | undefined {
  const isExpired = owner.expiresAt !== null && Date.parse(owner.expiresAt) <= clock.nowMs();
  const isFor = use === 'payer' ? canPay(owner) : owner.kind === use;
  return isFor && !isExpired ? owner : undefined;
}

export function canPay({ kind }: Pick<KeyOwner, 'kind'>): boolean {
  return kind === 'consumer' || kind === 'spend';
}
