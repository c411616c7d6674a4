/**
 * Owners of keys as they are kept in memory. Keys of one account share its ids, and those of one budget its path: ten
 * thousand keys with copies of their own do not fit the processor's caches (decision 0014).
 */
import { LRUCache } from 'lru-cache';
import { OWNER_KINDS, type KeyOwner } from '../store/accounts/api-keys.ts';
import { KEYS_CACHED_MAX } from './limits.ts';

type AccountIds = Pick<KeyOwner, 'accountId' | 'consumerId' | 'developerId'>;

export class SharedParts {
  readonly #accounts = new LRUCache<string, AccountIds>({ max: KEYS_CACHED_MAX });
  readonly #paths = new LRUCache<string, number[]>({ max: KEYS_CACHED_MAX });

  /** The same owner. The fields that a charge reads come first, and all owners have one shape for V8. */
  of({ spend, kind, ...owner }: KeyOwner): KeyOwner {
    const { accountId, consumerId, developerId } = owner;
    const ids = firstOf(this.#accounts, accountId, { accountId, consumerId, developerId });
    return {
      kind: OWNER_KINDS.find((each) => each === kind) ?? kind,
      expiresAt: owner.expiresAt,
      guard: owner.guard,
      spend: spend && {
        number: spend.number,
        path: firstOf(this.#paths, `${accountId}/${spend.path.join('/')}`, spend.path),
      },
      notedIn: 0,
      ledger: owner.ledger,
      consumerId: ids.consumerId,
      developerId: ids.developerId,
      developerNumber: owner.developerNumber,
      accountId: ids.accountId,
      keyId: owner.keyId,
      hash: owner.hash,
    };
  }
}

/** The value that was the first under this name, as long as it is remembered. */
function firstOf<T extends object>(known: LRUCache<string, T>, name: string, value: T): T {
  const first = known.get(name);
  if (first) return first;
  known.set(name, value);
  return value;
}
