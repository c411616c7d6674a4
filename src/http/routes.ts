/**
 * The table of routes: the requests that the service accepts, who may send them, and its replies. The server, the tests
 * and the OpenAPI document are derived from it.
 */
import { BalanceReply, UsageByDayQuery, UsageByDayReply, UsageReply } from '../schemas/balance.ts';
import {
  ChargeBatchBody,
  ChargeBatchEnvelope,
  ChargeBatchReply,
} from '../schemas/charge-batches.ts';
import { ChargeBody, ChargeReply } from '../schemas/charges.ts';
import { ChargesFileQuery, ChargesQuery, ChargesReply } from '../schemas/charges.ts';
import { DeveloperChargeReply, RefundBody, RefundReply } from '../schemas/charges.ts';
import { ConsumerChargeReply, UsageFileQuery, UsageQuery } from '../schemas/charges.ts';
import { DeveloperChanges, DeveloperReply } from '../schemas/developers.ts';
import {
  EarningsFileQuery,
  EarningsQuery,
  EarningsReply,
  LiveEarnings,
} from '../schemas/earnings.ts';
import { CaptureBody, CaptureReply, ExtendBody, HoldBody, HoldReply } from '../schemas/holds.ts';
import { HoldsQuery, HoldsReply, ListedHold, PlacedHoldReply } from '../schemas/holds.ts';
import { RefusalsQuery, RefusalsReply } from '../schemas/refusals.ts';
import { Id, PageQuery } from '../schemas/shapes.ts';
import { Month, StatementQuery, StatementReply } from '../schemas/statements.ts';
import { ChangedToolReply, ToolBody, ToolChanges } from '../schemas/tools.ts';
import { ToolReply, ToolsQuery, ToolsReply } from '../schemas/tools.ts';
import {
  CheckoutBody,
  CheckoutReply,
  DeveloperTopUpsReply,
  TopUpBody,
} from '../schemas/top-ups.ts';
import { TopUpQuoteQuery, TopUpQuoteReply } from '../schemas/top-ups.ts';
import { TopUpRecord, TopUpReply, TopUpsReply } from '../schemas/top-ups.ts';
import type { Endpoint } from './endpoint.ts';
import { getDeveloper, patchDeveloper } from './handlers/accounts/developer-settings.ts';
import { getBalance, getUsage } from './handlers/balance/balance-and-usage.ts';
import { getUsageByDay, getUsageCharge } from './handlers/balance/balance-and-usage.ts';
import { BATCH_BYTES_MAX, postChargeBatch } from './handlers/charges/charge-batches.ts';
import { exportCharges, exportEarnings, exportUsage } from './handlers/charges/charge-files.ts';
import { postChargeRefund } from './handlers/charges/charge-refunds.ts';
import { getCharge, listCharges, postCharge } from './handlers/charges/charges.ts';
import { getHold, getHolds } from './handlers/holds/hold-lists.ts';
import { postCapture, postExtension, postHold, postRelease } from './handlers/holds/holds.ts';
import { getEarnings } from './handlers/earnings/earnings.ts';
import { streamEarnings } from './handlers/earnings/live-earnings.ts';
import { exportStatement, getStatement } from './handlers/earnings/statements.ts';
import { getTool, getTools, patchTool, postTool } from './handlers/earnings/tools.ts';
import { getRefusals } from './handlers/refusals/refusals.ts';
import { getDeveloperTopUps } from './handlers/top-ups/developer-top-ups.ts';
import { getTopUpQuote } from './handlers/top-ups/quote.ts';
import {
  DIRECT_TOP_UP_ERRORS,
  getTopUp,
  listTopUps,
  postCheckout,
  postTopUp,
} from './handlers/top-ups/top-ups.ts';
import { csv, get, scan, stream } from './read-endpoints.ts';
import { AGENT_ENDPOINTS } from './routes/agents.ts';
import { APPROVAL_ENDPOINTS } from './routes/approvals.ts';
import { BUDGET_ENDPOINTS } from './routes/budgets.ts';
import { CONSOLE_ENDPOINTS } from './routes/console.ts';
import { EVENT_ENDPOINTS } from './routes/events.ts';
import { LEASE_ENDPOINTS } from './routes/leases.ts';
import { RECEIPT_ENDPOINTS } from './routes/receipts.ts';
import { act, patch, post } from './write-endpoints.ts';

const chargeParams = { id: Id('charge', 'The id of the charge.') };
const holdParams = { id: Id('hold', 'The id of the hold.') };
const toolParams = { id: Id('tool', 'The id of the tool.') };
const topUpParams = { id: Id('topUp', 'The id of the top-up.') };
const monthParams = { month: Month };

/** A hold is refused for the same reasons as a charge. */
const CHARGE_REFUSALS = [
  'invalid_api_key',
  'invalid_amount',
  'unknown_tool',
  'tool_archived',
  'insufficient_balance',
  'spend_limit_reached',
  'tool_not_allowed',
  'developer_not_allowed',
  'account_keys_closed',
  'mode_mismatch',
  'approval_required',
  'idempotency_key_in_use',
] as const;

export const ENDPOINTS: readonly Endpoint[] = [
  // Charging (specification section 4.3)
  post('/v1/charges', {
    operation: 'createCharge',
    share: 'none',
    rate: 'none',
    role: 'developer',
    body: ChargeBody,
    replies: { 201: ChargeReply },
    errors: [...CHARGE_REFUSALS, 'outcome_unknown'],
    isIdempotent: true,
    reportsOutcome: true,
    handle: postCharge,
  }),
  post('/v1/charges/batch', {
    operation: 'createChargeBatch',
    role: 'developer',
    body: ChargeBatchBody,
    accepts: ChargeBatchEnvelope,
    bodyBytesMax: BATCH_BYTES_MAX,
    share: 'batches',
    rate: 'none',
    repliesInSlices: true,
    replies: { 200: ChargeBatchReply },
    reportsOutcome: true,
    handle: postChargeBatch,
  }),
  scan('/v1/charges', {
    operation: 'listCharges',
    role: 'developer',
    query: ChargesQuery,
    replies: { 200: ChargesReply },
    errors: ['charges_archived'],
    inSteps: true,
    handle: listCharges,
  }),
  csv('/v1/charges.csv', {
    operation: 'exportCharges',
    role: 'developer',
    query: ChargesFileQuery,
    errors: ['charges_archived'],
    handle: exportCharges,
  }),
  get('/v1/charges/:id', {
    operation: 'getCharge',
    role: 'developer',
    params: chargeParams,
    replies: { 200: DeveloperChargeReply },
    errors: ['not_found', 'charges_archived'],
    handle: getCharge,
  }),
  post('/v1/charges/:id/refund', {
    operation: 'refundCharge',
    share: 'refunds',
    rate: 'refunds',
    role: 'developer',
    params: chargeParams,
    body: RefundBody,
    replies: { 201: RefundReply },
    errors: ['invalid_amount', 'refund_exceeds_charge', 'not_found', 'charges_archived'],
    isIdempotent: true,
    handle: postChargeRefund,
  }),
  // Holds
  post('/v1/holds', {
    operation: 'createHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    body: HoldBody,
    replies: { 201: PlacedHoldReply },
    errors: CHARGE_REFUSALS,
    isIdempotent: true,
    handle: postHold,
  }),
  get('/v1/holds', {
    operation: 'listHolds',
    role: 'either',
    query: HoldsQuery,
    replies: { 200: HoldsReply },
    handle: getHolds,
  }),
  get('/v1/holds/:id', {
    operation: 'getHold',
    role: 'either',
    params: holdParams,
    replies: { 200: ListedHold },
    errors: ['hold_not_found'],
    handle: getHold,
  }),
  post('/v1/holds/:id/capture', {
    operation: 'captureHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: holdParams,
    body: CaptureBody,
    replies: { 201: CaptureReply },
    errors: [
      'invalid_amount',
      'exceeds_hold',
      'insufficient_balance',
      'spend_limit_reached',
      'hold_not_found',
      'hold_closed',
      'idempotency_key_in_use',
    ],
    isIdempotent: true,
    handle: postCapture,
  }),
  post('/v1/holds/:id/extend', {
    operation: 'extendHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: holdParams,
    body: ExtendBody,
    replies: { 200: HoldReply },
    errors: ['hold_not_found', 'hold_closed', 'idempotency_key_in_use'],
    isIdempotent: true,
    handle: postExtension,
  }),
  act('/v1/holds/:id/release', {
    operation: 'releaseHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: holdParams,
    replies: { 200: HoldReply },
    errors: ['hold_not_found', 'hold_closed'],
    handle: postRelease,
  }),
  ...LEASE_ENDPOINTS,
  ...RECEIPT_ENDPOINTS,
  // Consumers (section 4.1)
  get('/v1/balance', {
    operation: 'getBalance',
    role: 'consumer',
    replies: { 200: BalanceReply },
    handle: getBalance,
  }),
  scan('/v1/usage', {
    operation: 'listUsage',
    role: 'consumer',
    query: UsageQuery,
    replies: { 200: UsageReply },
    errors: ['charges_archived'],
    inSteps: true,
    handle: getUsage,
  }),
  scan('/v1/usage/daily', {
    operation: 'listUsageByDay',
    role: 'consumer',
    query: UsageByDayQuery,
    replies: { 200: UsageByDayReply },
    handle: getUsageByDay,
  }),
  get('/v1/usage/:id', {
    operation: 'getUsageCharge',
    role: 'consumer',
    params: chargeParams,
    replies: { 200: ConsumerChargeReply },
    errors: ['not_found', 'charges_archived'],
    handle: getUsageCharge,
  }),
  csv('/v1/usage.csv', {
    operation: 'exportUsage',
    role: 'consumer',
    query: UsageFileQuery,
    errors: ['charges_archived'],
    handle: exportUsage,
  }),
  post('/v1/top-up', {
    operation: 'createTopUp',
    share: 'none',
    role: 'consumer',
    body: TopUpBody,
    replies: { 201: TopUpReply, 202: TopUpReply },
    errors: DIRECT_TOP_UP_ERRORS,
    isIdempotent: true,
    handle: postTopUp,
  }),
  get('/v1/top-up', {
    operation: 'listTopUps',
    role: 'consumer',
    query: PageQuery,
    replies: { 200: TopUpsReply },
    handle: listTopUps,
  }),
  get('/v1/top-up/quote', {
    operation: 'quoteTopUp',
    share: 'none',
    role: 'consumer',
    query: TopUpQuoteQuery,
    replies: { 200: TopUpQuoteReply },
    errors: ['invalid_amount'],
    handle: getTopUpQuote,
  }),
  get('/v1/top-up/:id', {
    operation: 'getTopUp',
    role: 'consumer',
    params: topUpParams,
    replies: { 200: TopUpRecord },
    errors: ['not_found'],
    handle: getTopUp,
  }),
  post('/v1/checkout', {
    operation: 'createCheckout',
    share: 'none',
    role: 'consumer',
    body: CheckoutBody,
    replies: { 201: CheckoutReply, 202: CheckoutReply },
    errors: ['invalid_amount', 'payment_failed', 'consent_required'],
    isIdempotent: true,
    handle: postCheckout,
  }),
  ...BUDGET_ENDPOINTS,
  ...APPROVAL_ENDPOINTS,
  ...EVENT_ENDPOINTS,

  // Developers (section 4.2)
  scan('/v1/earnings', {
    operation: 'getEarnings',
    role: 'developer',
    query: EarningsQuery,
    replies: { 200: EarningsReply },
    handle: getEarnings,
  }),
  stream('/v1/earnings/live', {
    operation: 'streamEarnings',
    role: 'developer',
    event: { name: 'earnings', data: LiveEarnings },
    handle: streamEarnings,
  }),
  csv('/v1/earnings.csv', {
    operation: 'exportEarnings',
    role: 'developer',
    query: EarningsFileQuery,
    handle: exportEarnings,
  }),
  post('/v1/tools', {
    operation: 'createTool',
    role: 'developer',
    body: ToolBody,
    replies: { 201: ToolReply },
    errors: ['invalid_amount', 'tool_exists', 'too_many_tools'],
    handle: postTool,
  }),
  get('/v1/tools', {
    operation: 'listTools',
    role: 'developer',
    query: ToolsQuery,
    replies: { 200: ToolsReply },
    handle: getTools,
  }),
  get('/v1/tools/:id', {
    operation: 'getTool',
    role: 'developer',
    params: toolParams,
    replies: { 200: ChangedToolReply },
    errors: ['not_found'],
    handle: getTool,
  }),
  patch('/v1/tools/:id', {
    operation: 'updateTool',
    role: 'developer',
    params: toolParams,
    body: ToolChanges,
    replies: { 200: ChangedToolReply },
    errors: ['invalid_amount', 'not_found', 'too_many_tools'],
    handle: patchTool,
  }),
  scan('/v1/top-ups', {
    operation: 'listDeveloperTopUps',
    role: 'developer',
    query: PageQuery,
    replies: { 200: DeveloperTopUpsReply },
    handle: getDeveloperTopUps,
  }),
  get('/v1/refusals', {
    operation: 'listRefusals',
    role: 'developer',
    query: RefusalsQuery,
    replies: { 200: RefusalsReply },
    handle: getRefusals,
  }),
  get('/v1/developer', {
    operation: 'getDeveloper',
    role: 'developer',
    replies: { 200: DeveloperReply },
    handle: getDeveloper,
  }),
  patch('/v1/developer', {
    operation: 'updateDeveloper',
    role: 'developer',
    body: DeveloperChanges,
    replies: { 200: DeveloperReply },
    handle: patchDeveloper,
  }),
  // Either role
  csv('/v1/statements/:month.csv', {
    operation: 'exportStatement',
    role: 'either',
    params: monthParams,
    query: StatementQuery,
    errors: ['invalid_request'],
    handle: exportStatement,
  }),
  get('/v1/statements/:month', {
    operation: 'getStatement',
    role: 'either',
    share: 'none',
    params: monthParams,
    query: StatementQuery,
    replies: { 200: StatementReply },
    errors: ['invalid_request'],
    handle: getStatement,
  }),
  ...CONSOLE_ENDPOINTS,
  ...AGENT_ENDPOINTS,
];
