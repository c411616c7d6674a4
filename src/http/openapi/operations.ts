/**
 * The prose of the API reference, by operation id: what each endpoint does, from the caller's point of view. Each row
 * of the table of routes names its operation; a row without prose does not compile. It is in operations/, by noun, as
 * the rows are in ../routes/.
 */
import { ACCOUNT_OPERATIONS } from './operations/accounts.ts';
import { AGENT_OPERATIONS } from './operations/agents.ts';
import { APPROVAL_OPERATIONS } from './operations/approvals.ts';
import { BALANCE_OPERATIONS } from './operations/balance.ts';
import { BUDGET_OPERATIONS } from './operations/budgets.ts';
import { CARD_OPERATIONS } from './operations/cards.ts';
import { CHARGE_OPERATIONS } from './operations/charges.ts';
import { DEVELOPER_OPERATIONS } from './operations/developers.ts';
import { EARNINGS_OPERATIONS } from './operations/earnings.ts';
import { EVENT_OPERATIONS } from './operations/events.ts';
import { HOLD_OPERATIONS } from './operations/holds.ts';
import { KEY_OPERATIONS } from './operations/keys.ts';
import { LEASE_OPERATIONS } from './operations/leases.ts';
import { OPERATOR_OPERATIONS } from './operations/operators.ts';
import { RECEIPT_OPERATIONS } from './operations/receipts.ts';
import { STATEMENT_OPERATIONS } from './operations/statements.ts';
import { TOOL_OPERATIONS } from './operations/tools.ts';
import { TOP_UP_OPERATIONS } from './operations/top-ups.ts';

export const OPERATIONS = {
  ...ACCOUNT_OPERATIONS,
  ...AGENT_OPERATIONS,
  ...APPROVAL_OPERATIONS,
  ...BALANCE_OPERATIONS,
  ...BUDGET_OPERATIONS,
  ...CARD_OPERATIONS,
  ...CHARGE_OPERATIONS,
  ...DEVELOPER_OPERATIONS,
  ...EARNINGS_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...HOLD_OPERATIONS,
  ...KEY_OPERATIONS,
  ...LEASE_OPERATIONS,
  ...OPERATOR_OPERATIONS,
  ...RECEIPT_OPERATIONS,
  ...STATEMENT_OPERATIONS,
  ...TOOL_OPERATIONS,
  ...TOP_UP_OPERATIONS,
} as const;

export type OperationId = keyof typeof OPERATIONS;
