/** Budgets and the spend keys to hand out for them, as `FareboxConsumer.budgets` has them. */
import type {
  BudgetBody,
  BudgetChanges,
  BudgetRefusalsReply,
  BudgetReply,
  BudgetsReply,
  BudgetUsageReply,
  KeyReply,
  NewKeyReply,
  SpendKeysReply,
} from './api.js';
import type { CallOptions, List, PageSize } from './index.js';
import type { Amount } from './money.js';

type Amounts = 'limit' | 'maxPerCall' | 'maxLease' | 'window';

type WithAmounts<Settings extends Pick<BudgetChanges, Amounts>> = Omit<Settings, Amounts> & {
  /** Dollars in total. Null: no limit. */
  limit?: Amount | null | undefined;
  /** Dollars of one charge or hold. Null: no limit. */
  maxPerCall?: Amount | null | undefined;
  /** Dollars of one lease. Null: no limit. */
  maxLease?: Amount | null | undefined;
  /** Dollars in each calendar hour, day, week or month, in UTC. Null: no limit. */
  window?: { per: 'hour' | 'day' | 'week' | 'month'; limit: Amount } | null | undefined;
};

/**
 * Budgets, and spend keys to hand out. A spend key can be charged within its budget and every budget above it, and
 * cannot read the balance or top up. A client with a spend key sees its own budget, and the budgets below it if it has
 * `mayDelegate`.
 * Throws `not_found`, `budget_closed` and `delegation_not_allowed`. A revocation that may have succeeded is
 * not sent again.
 */
export interface Budgets {
  /** Sends an idempotency key, a random one by default, so that a retry creates nothing more. */
  create(
    request: WithAmounts<BudgetBody> & { idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<BudgetReply>;
  /** Newest first. */
  list(
    filter?: PageSize & { parentId?: string | undefined },
    options?: CallOptions,
  ): List<BudgetReply, BudgetsReply>;
  get(id: string, options?: CallOptions): Promise<BudgetReply>;
  /** Changes only the members that are given. */
  update(
    id: string,
    changes: WithAmounts<BudgetChanges>,
    options?: CallOptions,
  ): Promise<BudgetReply>;
  /**
   * Closes the budget with all budgets and keys below it. It cannot be opened again. With `releaseHolds`,
   * what open holds reserve is released; otherwise it can still be captured.
   * The budget that limits a single developer can be closed only by the owner, in the console.
   */
  close(
    id: string,
    request?: { releaseHolds?: boolean | undefined },
    options?: CallOptions,
  ): Promise<BudgetReply>;
  /**
   * What its keys and those below it spent; each page has the `total`. `from` and `to` are the beginnings of
   * UTC days.
   */
  usage(
    id: string,
    filter?: PageSize & {
      /** Default: `tool`. */
      by?: 'key' | 'tool' | 'developer' | 'day' | undefined;
      from?: string | undefined;
      to?: string | undefined;
    },
    options?: CallOptions,
  ): List<BudgetUsageReply['usage'][number], BudgetUsageReply>;
  /** What its keys and those below it were refused in the last hours, 24 by default, by key and code. */
  refusals(
    id: string,
    filter?: { hours?: number | undefined },
    options?: CallOptions,
  ): Promise<BudgetRefusalsReply>;
  /**
   * Only this reply contains the `key`, and that of a retry with the same `idempotencyKey`, which is random
   * by default.
   */
  createKey(
    id: string,
    request?: {
      name?: string | undefined;
      expiresAt?: string | undefined;
      idempotencyKey?: string | undefined;
    },
    options?: CallOptions,
  ): Promise<NewKeyReply>;
  /** Newest first, including keys that have ended. */
  listKeys(id: string, filter?: PageSize, options?: CallOptions): List<KeyReply, SpendKeysReply>;
  /**
   * Replaces the key. The old one ends at once, or after the overlap. A retry with the same `idempotencyKey`, which is
   * random by default, gets the same new key.
   */
  rollKey(
    keyId: string,
    request?: { overlapSeconds?: number | undefined; idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<NewKeyReply>;
  /** Stops the key everywhere within a second. */
  revokeKey(
    keyId: string,
    request?: { releaseHolds?: boolean | undefined },
    options?: CallOptions,
  ): Promise<KeyReply>;
}
