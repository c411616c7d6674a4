/**
 * The table of routes: the requests that the service accepts, who may send them, and its replies. The server, the tests
 * and the OpenAPI document are derived from it. Its rows are in routes/, by noun.
 */
import type { Endpoint } from './endpoint.ts';
import { ACCOUNT_ENDPOINTS } from './routes/accounts.ts';
import { AGENT_ENDPOINTS } from './routes/agents.ts';
import { APPROVAL_ENDPOINTS } from './routes/approvals.ts';
import { BALANCE_ENDPOINTS } from './routes/balance.ts';
import { BUDGET_ENDPOINTS } from './routes/budgets.ts';
import { CARD_ENDPOINTS } from './routes/cards.ts';
import { CHARGE_ENDPOINTS } from './routes/charges.ts';
import { DEVELOPER_ENDPOINTS } from './routes/developers.ts';
import { EARNINGS_ENDPOINTS } from './routes/earnings.ts';
import { EVENT_ENDPOINTS } from './routes/events.ts';
import { HOLD_ENDPOINTS } from './routes/holds.ts';
import { KEY_ENDPOINTS } from './routes/keys.ts';
import { LEASE_ENDPOINTS } from './routes/leases.ts';
import { OPERATOR_ENDPOINTS } from './routes/operators.ts';
import { RECEIPT_ENDPOINTS } from './routes/receipts.ts';
import { STATEMENT_ENDPOINTS } from './routes/statements.ts';
import { TOOL_ENDPOINTS } from './routes/tools.ts';
import { TOP_UP_ENDPOINTS } from './routes/top-ups.ts';

export const ENDPOINTS: readonly Endpoint[] = [
  ...CHARGE_ENDPOINTS,
  ...HOLD_ENDPOINTS,
  ...LEASE_ENDPOINTS,
  ...RECEIPT_ENDPOINTS,
  ...BALANCE_ENDPOINTS,
  ...TOP_UP_ENDPOINTS,
  ...BUDGET_ENDPOINTS,
  ...APPROVAL_ENDPOINTS,
  ...EVENT_ENDPOINTS,
  ...EARNINGS_ENDPOINTS,
  ...TOOL_ENDPOINTS,
  ...DEVELOPER_ENDPOINTS,
  ...STATEMENT_ENDPOINTS,
  ...ACCOUNT_ENDPOINTS,
  ...CARD_ENDPOINTS,
  ...KEY_ENDPOINTS,
  ...OPERATOR_ENDPOINTS,
  ...AGENT_ENDPOINTS,
];
