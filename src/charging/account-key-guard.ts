/**
 * The budgets through which developers charge keys of an account that has a ceiling for each developer and day. Which budget
 * it is never changes, so memory is right; what it allows and has left is checked as with any budget.
 */
import { LRUCache } from 'lru-cache';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { findDeveloperBudget, type DeveloperBudget } from '../store/budgets/developer-budgets.ts';
import type { Database } from '../store/database.ts';
import { BUDGETS_CACHED_MAX } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';

type Developer = Pick<KeyOwner, 'developerId' | 'developerNumber'>;

export class AccountKeyGuard {
  readonly #database: Database;
  readonly #known = new LRUCache<string, DeveloperBudget>({ max: BUDGETS_CACHED_MAX });
  /** Look-ups in progress, which the charges that arrive meanwhile share. */
  readonly #loading = new Map<string, Promise<DeveloperBudget | null>>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Null: the account has no ceiling by now. */
  find(account: KeyOwner, developer: Developer): MaybePromise<DeveloperBudget | null> {
    const name = `${account.consumerId}/${developer.developerNumber}`;
    return this.#known.get(name) ?? this.#loading.get(name) ?? this.#load(name, account, developer);
  }

  async #load(name: string, account: KeyOwner, developer: Developer) {
    const { ledger, consumerId, accountId } = account;
    const { developerId, developerNumber } = developer;
    const loading = findDeveloperBudget(this.#database, {
      ledger,
      consumerId,
      accountId,
      developerId,
      developerNumber,
    }).finally(() => this.#loading.delete(name));
    this.#loading.set(name, loading);
    const found = await loading;
    if (found) this.#known.set(name, found);
    return found;
  }
}
