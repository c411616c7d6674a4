/** The API's reply types, under the names that the pages use. */
import type { ToolsReply } from '../../src/schemas/tools.ts';

export type { ChangedToolReply as OneTool } from '../../src/schemas/tools.ts';

export type {
  ApprovalReply as Approval,
  ApprovalsReply as Approvals,
  DecisionReply as Decision,
} from '../../src/schemas/approvals.ts';
export type {
  AuditLogReply as AuditLog,
  OperatorAuditLogReply as OperatorAuditLog,
} from '../../src/schemas/audit-log.ts';
export type {
  BalanceReply as Balance,
  LowBalanceReply as LowBalance,
  UsageByDayReply as UsageByDay,
  UsageReply as Usage,
} from '../../src/schemas/balance.ts';
export type {
  BudgetReply as Budget,
  BudgetsReply as Budgets,
  BudgetUsageReply as BudgetUsage,
  SpendKeysReply as SpendKeys,
} from '../../src/schemas/budgets.ts';
export type {
  ChargesReply as Charges,
  ConsumerChargeReply as PaidCharge,
  RefundReply as ChargeRefund,
} from '../../src/schemas/charges.ts';
export type { CardSetupReply as CardSetup, CardsReply as Cards } from '../../src/schemas/cards.ts';
export type { ConsentReply as Consent } from '../../src/schemas/consent.ts';
export type { DeveloperReply as Developer } from '../../src/schemas/developers.ts';
export type { EarningsReply as Earnings, LiveEarnings } from '../../src/schemas/earnings.ts';
export type {
  AccountKeysReply as AccountKeys,
  KeyReply as Key,
  KeysReply as Keys,
  NewKeyReply as NewKey,
  SessionReply as Session,
} from '../../src/schemas/keys.ts';
export type {
  AccountReply as OperatorAccount,
  AccountsReply as OperatorAccounts,
  MovementsReply as OperatorMovements,
  OperatorChargeReply as OperatorCharge,
  OperatorChargesReply as OperatorCharges,
  OperatorHoldsReply as OperatorHolds,
  OperatorStatusReply as OperatorStatus,
  OperatorTopUpsReply as OperatorTopUps,
} from '../../src/schemas/operators.ts';
export type {
  ReceiptKeysReply as ReceiptKeys,
  VerifyReply as Verified,
} from '../../src/schemas/receipts.ts';
export type {
  BudgetRefusalsReply as BudgetRefusals,
  RefusalsReply as Refusals,
} from '../../src/schemas/refusals.ts';
export type {
  ConsumerStatementReply as ConsumerStatement,
  DeveloperStatementReply as DeveloperStatement,
} from '../../src/schemas/statements.ts';
export type {
  CheckoutReply as Checkout,
  DeveloperTopUpsReply as DeveloperTopUps,
  TopUpRecord as TopUp,
  TopUpReply as PaidTopUp,
  TopUpQuoteReply as Quote,
  TopUpsReply as TopUps,
} from '../../src/schemas/top-ups.ts';
export type {
  DeliveriesReply as Deliveries,
  NewWebhookEndpointReply as NewWebhookEndpoint,
  RolledSecretReply as RolledSecret,
  WebhookEndpointReply as WebhookEndpoint,
  WebhookEndpointsReply as WebhookEndpoints,
} from '../../src/schemas/webhook-endpoints.ts';
export type Tools = ToolsReply;
export type Tool = ToolsReply['tools'][number];
