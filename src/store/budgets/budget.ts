/** A node of a budget as its rows have it, and what it says when one of its limits refuses. */
import {
  windowEnd,
  windowUnitOf,
  type BudgetStatus,
  type LimitScope,
  type WindowUnit,
} from '../../domain/budget.ts';
import type { Micros } from '../../domain/money.ts';
import { sql } from '../database.ts';

/** Ids are UUIDs, developers too. */
export interface Budget {
  readonly id: string;
  readonly number: number;
  /** Numbers from the root to this node. */
  readonly path: readonly number[];
  /** Null: the account. */
  readonly parentId: string | null;
  readonly name: string;
  readonly status: BudgetStatus;
  readonly limitMicros: Micros | null;
  readonly usedMicros: Micros;
  readonly window: BudgetWindow | null;
  /** The smallest amount left under any limit on the path; null if nothing is limited. */
  readonly remainingMicros: Micros | null;
  readonly maxPerCallMicros: Micros | null;
  readonly allowLeases: boolean;
  readonly maxLeaseMicros: Micros | null;
  readonly tools: readonly string[] | null;
  readonly developers: readonly string[] | null;
  readonly approveDevelopers: boolean;
  /** Kept while `approveDevelopers` is false. */
  readonly approvedDevelopers: readonly string[];
  readonly mayDelegate: boolean;
  /** Whether it limits what a single developer charges to keys of the account (developer-budgets.ts). */
  readonly limitsConsumerKeys: boolean;
  readonly metadata: Readonly<Record<string, string | number | boolean | null>> | null;
  readonly expiresAt: string | null;
}

/** The current calendar window. */
export interface BudgetWindow {
  readonly unit: WindowUnit;
  readonly limitMicros: Micros;
  readonly usedMicros: Micros;
  readonly resetsAt: string;
}

/** The first node, from the root down, that had no room for a charge or hold. */
export interface LimitReached {
  readonly kind: 'limit_reached';
  readonly budgetId: string;
  readonly scope: LimitScope;
  readonly limitMicros: Micros;
  readonly remainingMicros: Micros;
  /** Null unless the limit is a window's. */
  readonly resetsAt: string | null;
}

/** The first node, from the root down, that waits for its owner to approve the developer. */
export interface ApprovalRequired {
  readonly kind: 'approval_required';
  readonly budgetId: string;
  readonly developerId: string;
}

/** The columns of `post_entries_2` that say which limit refused. */
export interface LimitRow {
  readonly budget_id: string | null;
  readonly limit_scope: LimitScope | null;
  readonly limit_micros: Micros | null;
  readonly limit_left: Micros | null;
  readonly window_unit: number | null;
  readonly window_began: string | null;
}

/**
 * The amount that the window of a node `b` has used, with the beginnings of current windows in `w`; in a window that is
 * over, nothing.
 */
export const windowUsedNow = sql.fragment`
  case when b.window_began < w.began[b.window_unit] then 0 else b.window_used_micros end
`;

export function approvalRequired(
  { budget_id: budgetId }: LimitRow,
  developerId: string,
): ApprovalRequired {
  if (budgetId === null) throw new Error('a budget refused and is not named');
  return { kind: 'approval_required', budgetId, developerId };
}

export function limitReached(found: LimitRow): LimitReached {
  const { budget_id: budgetId, limit_scope: scope } = found;
  const { limit_micros: limitMicros, limit_left: remainingMicros } = found;
  if (budgetId === null || scope === null || limitMicros === null || remainingMicros === null) {
    throw new Error('a limit refused and is not named');
  }
  const unit = scope === 'window' ? windowUnitOf(found.window_unit ?? 0) : null;
  return {
    kind: 'limit_reached',
    budgetId,
    scope,
    limitMicros,
    remainingMicros,
    resetsAt: unit && found.window_began ? windowEnd(unit, found.window_began) : null,
  };
}
