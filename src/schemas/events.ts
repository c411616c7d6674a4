/** Schemas of the events that are sent to webhook endpoints: the payload, and the data of each type. */
import { Type, type TObject } from 'typebox';
import { BUDGET_MARKS_PERCENT, LIMIT_SCOPES } from '../domain/budget.ts';
import type { EventType } from '../domain/events.ts';
import type { IdKind } from '../domain/ids.ts';
import { REVERSAL_STATUSES } from '../domain/reversal.ts';
import { TOP_UP_STATUSES } from '../domain/top-up.ts';
import { DISABLED_REASONS } from '../domain/webhook-endpoint.ts';
import { RefundReply } from './charges.ts';
import { HoldReply } from './holds.ts';
import { KeyReply } from './keys.ts';
import { LeaseReply } from './leases.ts';
import { Closed, Dollars, Id, Text, TimeOf, Timestamp, Word } from './shapes.ts';
import { TopUpRecord } from './top-ups.ts';

/** An event has neither a link nor a sum: each refund has events of its own. */
const { sessionUrl: _, refunded: __, ...topUpMembers } = TopUpRecord.properties;
const TopUpData = Closed(topUpMembers);

const reversalData = (kind: IdKind, what: string) =>
  Closed({
    id: Id(kind, `The id of the ${what}.`),
    topUpId: Id('topUp', 'The top-up whose money it takes back or holds.'),
    amount: Dollars('Dollars that it takes back or holds.', 10),
    status: Word(REVERSAL_STATUSES, `The state of the ${what}.`),
    createdAt: Timestamp,
  });
const RefundData = reversalData('topUpRefund', 'refund');
const DisputeData = reversalData('dispute', 'dispute');
const WarningData = reversalData('fraudWarning', 'fraud warning');

const KeyData = Closed({
  ...KeyReply.properties,
  budgetId: Type.Union([Id('budget', 'The budget of a spend key.'), Type.Null()], {
    description: 'The budget that the key spends from. Null: a key of the account.',
    examples: [null],
  }),
});

const Price = (description: string) =>
  Type.Union([Dollars('Dollars per call.'), Type.Null()], { description, examples: [0.05] });
const PricedToolData = Closed({
  id: Id('tool', 'The id of the tool.'),
  name: Text('The name of the tool.', 'search'),
  price: Price('Dollars per call, or null: each charge states its amount.'),
  previousPrice: Price('The price before the change, or null.'),
});

const consumerId = Id('consumer', 'The consumer whose balance it is.');
const LowBalanceData = Closed({
  consumerId,
  balance: Dollars('Dollars that were left.', 4.95),
  threshold: Dollars('The threshold that the balance fell below.', 5),
});
const ExhaustedData = Closed({ consumerId, balance: Dollars('Dollars that were left.', 0) });
const BudgetMarkData = Closed({
  budgetId: Id('budget', 'The budget.'),
  scope: Word([LIMIT_SCOPES[0], LIMIT_SCOPES[1]], 'The limit: in total, or of the window.'),
  percent: Type.Unsafe<(typeof BUDGET_MARKS_PERCENT)[number]>({
    type: 'integer',
    enum: [...BUDGET_MARKS_PERCENT],
    description: 'The percentage of the limit that the use has reached.',
    examples: [80],
  }),
  used: Dollars('Dollars used.', 8),
  limit: Dollars('The limit in dollars.', 10),
  resetsAt: Type.Union([TimeOf('When the window ends.'), Type.Null()], {
    description: 'When the window ends; null for the limit in total.',
    examples: [null],
  }),
});

const endpointId = Id('webhookEndpoint', 'The webhook endpoint.');
const DisabledEndpointData = Closed({
  id: endpointId,
  reason: Word(
    DISABLED_REASONS.filter((reason) => reason !== 'owner'),
    '`failing`: it accepted no event for five days. `gone`: it responded with 410.',
  ),
});
const TestData = Closed({ id: endpointId });

const topUpEvents = Object.fromEntries(
  TOP_UP_STATUSES.map((status) => [`top_up.${status}`, TopUpData]),
) as Record<Extract<EventType, `top_up.${string}`>, typeof TopUpData>;

/** The data of each type of event. */
export const EVENT_DATA = {
  'balance.low': LowBalanceData,
  'balance.exhausted': ExhaustedData,
  'budget.threshold_reached': BudgetMarkData,
  ...topUpEvents,
  'refund.requested': RefundData,
  'refund.made': RefundData,
  'refund.failed': RefundData,
  'dispute.open': DisputeData,
  'dispute.lost': DisputeData,
  'dispute.won': DisputeData,
  'warning.open': WarningData,
  'warning.won': WarningData,
  'charge.refunded': RefundReply,
  'hold.expired': HoldReply,
  'lease.expired': LeaseReply,
  'key.created': KeyData,
  'key.rolled': KeyData,
  'key.revoked': KeyData,
  'tool.price_changed': PricedToolData,
  'webhook_endpoint.disabled': DisabledEndpointData,
  'webhook_endpoint.test': TestData,
} satisfies Record<EventType, TObject>;
