/**
 * The budgets through which developers charge keys of an account that has a daily limit for each developer.
 * Which budget it is never changes, so memory is right; what it allows and has left is checked as with
 * any budget. A developer whose budget its owner closed is refused without a daily limit too.
 */
import { LRUCache } from 'lru-cache';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import {
  findClosedBudget,
  findDeveloperBudget,
  type DeveloperBudget,
  type DeveloperOfAccount,
  type FoundDeveloperBudget,
} from '../store/budgets/developer-budgets.ts';
import type { Database } from '../store/database.ts';
import { BUDGETS_CACHED_MAX } from './limits.ts';
import { whenKnown, type MaybePromise } from './maybe-promise.ts';

type Developer = Pick<KeyOwner, 'developerId' | 'developerNumber'>;

/** The closed budget of a developer; null: it has none. */
type Closed = DeveloperBudget | null;

/** A key remembers so many developers. */
const DEVELOPERS_OF_KEY_MAX = 1_000;

export class AccountKeyGuard {
  readonly #database: Database;
  readonly #known = new LRUCache<string, FoundDeveloperBudget>({ max: BUDGETS_CACHED_MAX });
  /** Look-ups in progress, which the charges that arrive meanwhile share. */
  readonly #loading = new Map<string, Promise<FoundDeveloperBudget>>();
  /**
   * Kept with the key in memory, by the developer's number. Closing a developer's budget changes the keys of the
   * account: they are read again, and nothing is known about the new objects.
   */
  readonly #closed = new WeakMap<
    KeyOwner,
    LRUCache<number, { readonly budget: MaybePromise<Closed> }>
  >();

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * The key as the payer of the developer: with a daily limit for each developer, or if the developer is blocked, it
   * pays through the developer's budget. Null if it does not pay: its owner closed it, or keys of the account can
   * create no more budgets.
   */
  payerOf(key: KeyOwner, developer: Developer): MaybePromise<KeyOwner | null> {
    if (key.guard === null) return key;
    if (key.guard === 'closed') return null;
    if (key.guard === 'except_blocked') {
      return whenKnown(this.#findClosed(key, developer), (budget) =>
        budget ? { ...key, spend: budget } : key,
      );
    }
    return whenKnown(this.#find(key, developer), (found) => {
      switch (found.kind) {
        case 'found':
          return { ...key, spend: found.budget };
        case 'no_day_limit':
          return key;
        case 'full':
          return null;
      }
    });
  }

  #findClosed(key: KeyOwner, { developerNumber }: Developer): MaybePromise<Closed> {
    let ofKey = this.#closed.get(key);
    if (!ofKey) this.#closed.set(key, (ofKey = new LRUCache({ max: DEVELOPERS_OF_KEY_MAX })));
    const known = ofKey.get(developerNumber);
    if (known) return known.budget;
    const { ledger, consumerId } = key;
    const remembered = ofKey;
    const loading = findClosedBudget(this.#database, { ledger, consumerId, developerNumber }).then(
      (budget) => {
        remembered.set(developerNumber, { budget });
        return budget;
      },
      (error: unknown) => {
        remembered.delete(developerNumber);
        throw error;
      },
    );
    ofKey.set(developerNumber, { budget: loading });
    return loading;
  }

  #find(key: KeyOwner, developer: Developer): MaybePromise<FoundDeveloperBudget> {
    const name = `${key.consumerId}/${developer.developerNumber}`;
    const { ledger, consumerId, accountId, keyId } = key;
    const { developerId, developerNumber } = developer;
    const asked = { ledger, consumerId, accountId, developerId, developerNumber, keyId };
    return this.#known.get(name) ?? this.#loading.get(name) ?? this.#load(name, asked);
  }

  async #load(name: string, asked: DeveloperOfAccount): Promise<FoundDeveloperBudget> {
    const loading = findDeveloperBudget(this.#database, asked).finally(() =>
      this.#loading.delete(name),
    );
    this.#loading.set(name, loading);
    const found = await loading;
    if (found.kind === 'found') this.#known.set(name, found);
    return found;
  }
}
