/** The settings of a budget without limits, for tests that make budgets in the database. */
import type { BudgetSettings } from '../../src/store/budgets/change-budgets.ts';

export const UNLIMITED: BudgetSettings = {
  name: 'a test',
  limitMicros: null,
  window: null,
  maxPerCallMicros: null,
  allowLeases: false,
  maxLeaseMicros: null,
  tools: null,
  developers: null,
  approveDevelopers: false,
  approvedDevelopers: [],
  mayDelegate: false,
  metadata: null,
  expiresAt: null,
};
