/** Budgets: how deep and how many, the windows and marks of their limits, and which limits can refuse. */

/** Nodes from the root of a tree to its deepest leaf. */
export const BUDGET_DEPTH_MAX = 6;
/** The most budgets of one account, including closed ones: a node is never deleted. */
export const BUDGETS_MAX = 100_000;
/** The most spend keys of one account, including revoked ones: charges name a key by its number. */
export const SPEND_KEYS_MAX = 1_000_000;

/** Units of windows, in the order of their numbers in the database, which begin at 1. */
export const WINDOW_UNITS = ['hour', 'day', 'week', 'month'] as const;
export type WindowUnit = (typeof WINDOW_UNITS)[number];

/** Which limit of a budget refused. */
export const LIMIT_SCOPES = ['total', 'window', 'per_call', 'per_lease'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/**
 * The marks of a limit, in percent: when the use reaches one, the account gets an event. The same are in
 * migrations/functions/budget_marks.sql.
 */
export const BUDGET_MARKS_PERCENT = [80, 100] as const;

export const BUDGET_STATUSES = ['active', 'closed', 'expired'] as const;
export type BudgetStatus = (typeof BUDGET_STATUSES)[number];

/** How the usage of a budget can be grouped. */
export const USAGE_GROUPS = ['key', 'tool', 'developer', 'day'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export function windowUnitOf(number: number): WindowUnit | null {
  return WINDOW_UNITS[number - 1] ?? null;
}

/** 0 for none. */
export function numberOfWindowUnit(unit: WindowUnit | null): number {
  return unit === null ? 0 : WINDOW_UNITS.indexOf(unit) + 1;
}

/** When the calendar window that contains this time, in UTC, ends. */
export function windowEnd(unit: WindowUnit, at: string): string {
  const end = new Date(at);
  switch (unit) {
    case 'hour':
      end.setUTCHours(end.getUTCHours() + 1, 0, 0, 0);
      break;
    case 'day':
      end.setUTCHours(24, 0, 0, 0);
      break;
    case 'week':
      // Weeks begin on Monday.
      end.setUTCHours(24 * (7 - ((end.getUTCDay() + 6) % 7)), 0, 0, 0);
      break;
    case 'month':
      end.setUTCMonth(end.getUTCMonth() + 1, 1);
      end.setUTCHours(0, 0, 0, 0);
      break;
  }
  return end.toISOString();
}
