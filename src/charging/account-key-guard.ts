/**
 * The budgets through which developers charge keys of an account that has a daily limit for each developer.
 * Which budget it is never changes, so memory is right; what it allows and has left is checked as with
 * any budget.
 */
import { LRUCache } from 'lru-cache';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import {
  findDeveloperBudget,
  type DeveloperOfAccount,
  type FoundDeveloperBudget,
} from '../store/budgets/developer-budgets.ts';
import type { Database } from '../store/database.ts';
import { BUDGETS_CACHED_MAX } from './limits.ts';
import { whenKnown, type MaybePromise } from './maybe-promise.ts';

type Developer = Pick<KeyOwner, 'developerId' | 'developerNumber'>;

export class AccountKeyGuard {
  readonly #database: Database;
  readonly #known = new LRUCache<string, FoundDeveloperBudget>({ max: BUDGETS_CACHED_MAX });
  /** Look-ups in progress, which the charges that arrive meanwhile share. */
  readonly #loading = new Map<string, Promise<FoundDeveloperBudget>>();

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * The key as the payer of the developer: with a daily limit for each developer, it pays through the developer's
   * budget. Null if it does not pay: its owner closed it, or keys of the account can create no more budgets.
   */
  payerOf(key: KeyOwner, developer: Developer): MaybePromise<KeyOwner | null> {
    if (key.guard === null) return key;
    if (key.guard === 'closed') return null;
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
