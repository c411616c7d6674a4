import type { HoldEntry, HoldOutcome } from '../store/holds/post-hold-entries.ts';

export interface HoldLedger {
  /** Resolves when the entry is decided and durable. */
  post(entry: HoldEntry): Promise<HoldOutcome>;
}
