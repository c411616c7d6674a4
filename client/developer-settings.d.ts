/** Settings of a developer: its profile, and the balance below which it gets `balance.low`. */
import type { DeveloperChanges, DeveloperReply, LowBalanceReply } from './api.js';
import type { CallOptions } from './index.js';
import type { Amount } from './money.js';

/** Your own settings. */
export interface DeveloperSettings {
  get(options?: CallOptions): Promise<DeveloperReply>;
  /** Omitted members are not changed. */
  update(changes: DeveloperChanges, options?: CallOptions): Promise<DeveloperReply>;
}

/** The balance, in dollars, below which your webhook endpoints get `balance.low`; or null. */
export interface LowBalance {
  get(options?: CallOptions): Promise<LowBalanceReply>;
  update(changes: { threshold: Amount | null }, options?: CallOptions): Promise<LowBalanceReply>;
}
