/** Budgets and spend keys, for `FareboxConsumer`. */
import type {
  BudgetBody,
  BudgetChanges,
  BudgetReply,
  BudgetsReply,
  KeyReply,
  NewKeyReply,
  SpendKeysReply,
} from './api.js';
import type { CallOptions, List, PageSize } from './index.js';
import type { Amount } from './money.js';

type WithAmounts<Settings extends Pick<BudgetChanges, 'limit' | 'maxPerCall' | 'window'>> = Omit<
  Settings,
  'limit' | 'maxPerCall' | 'window'
> & {
  /** Dollars in all. Null: no limit. */
  limit?: Amount | null | undefined;
  /** Dollars of one charge or hold. Null: no limit. */
  maxPerCall?: Amount | null | undefined;
  /** Dollars in each calendar hour, day, week or month, in UTC. Null: no limit. */
  window?: { per: 'hour' | 'day' | 'week' | 'month'; limit: Amount } | null | undefined;
};

/**
 * Budgets, and spend keys to hand out: a key can be charged within its budget and every budget above, and do nothing
 * else. With a spend key in the place of the account's: its own budget, and what is below when it has `mayDelegate`.
 * Raises `not_found`, `budget_closed` and `delegation_not_allowed`. What may have been made is not sent again.
 */
export interface Budgets {
  create(request: WithAmounts<BudgetBody>, options?: CallOptions): Promise<BudgetReply>;
  /** Newest first. */
  list(
    filter?: PageSize & { parentId?: string | undefined },
    options?: CallOptions,
  ): List<BudgetReply, BudgetsReply>;
  get(id: string, options?: CallOptions): Promise<BudgetReply>;
  /** Changes the members that are sent, and no others. */
  update(
    id: string,
    changes: WithAmounts<BudgetChanges>,
    options?: CallOptions,
  ): Promise<BudgetReply>;
  /** Closes the budget with all budgets and keys below it. This cannot be undone. */
  close(id: string, options?: CallOptions): Promise<BudgetReply>;
  /** The reply has the `key`, this once. */
  createKey(
    id: string,
    request?: { name?: string | undefined; expiresAt?: string | undefined },
    options?: CallOptions,
  ): Promise<NewKeyReply>;
  /** Newest first, those that have ended too. */
  keys(id: string, filter?: PageSize, options?: CallOptions): List<KeyReply, SpendKeysReply>;
  /** A new key in the place of this one, which ends at once or when the overlap is over. */
  rollKey(
    keyId: string,
    request?: { overlapSeconds?: number | undefined },
    options?: CallOptions,
  ): Promise<NewKeyReply>;
  /** Everywhere within a second. */
  revokeKey(keyId: string, options?: CallOptions): Promise<KeyReply>;
}
