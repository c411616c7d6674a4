/** Schemas of what operators see and do: accounts, why a balance is what it is, and what does not move on. */
import { Type, type Static } from 'typebox';
import { DIFFERENCES } from '../domain/difference.ts';
import { MOVEMENT_KINDS } from '../domain/movement.ts';
import { TOP_UP_METHODS, TOP_UP_STATUSES } from '../domain/top-up.ts';
import { ListedHold } from './holds.ts';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  Id,
  OrNull,
  pageMarks,
  PrintableText,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

const links = {
  temporalUrl: OrNull(
    Text('A page of the Temporal UI.', 'https://temporal.example.com/'),
    'The workflow in the Temporal UI, or null where no UI is set.',
  ),
  processorUrl: OrNull(
    Text("A page of Stripe's dashboard.", 'https://dashboard.stripe.com/payments/pi_1'),
    "The payment in Stripe's dashboard, or null where there is none.",
  ),
};

export const AccountsQuery = Closed({
  query: Type.String({
    minLength: 1,
    maxLength: 254,
    description:
      'The beginning of an email address, an id of an account, consumer, developer, top-up, charge, budget or key, or an id of Stripe. A charge that is not archived finds the accounts of its consumer and its developer.',
    examples: ['you@example.com'],
  }),
});
export type AccountsQuery = Static<typeof AccountsQuery>;

const accountFields = {
  id: Id('account', 'The id of the account.'),
  email: Text('The address of its owner.', 'you@example.com'),
  consumerId: Id('consumer', 'Its consumer id.'),
  developerId: Id('developer', 'Its developer id.'),
  balance: Dollars('Dollars that can be spent now.', 9.95),
  createdAt: Timestamp,
};

export const AccountsReply = Closed({
  accounts: Type.Array(Closed(accountFields)),
});
export type AccountsReply = Static<typeof AccountsReply>;

const MovementKind = Word(MOVEMENT_KINDS, 'What moved the money.');

export const AccountReply = Closed({
  ...accountFields,
  debt: Dollars('Dollars owed for refunds and disputes.', 0),
  credited: Dollars('The sum of all movements.', 35),
  spent: Dollars('The sum of all charges.', 25.05),
  refunded: Dollars('The part of `spent` that was refunded; it is in `credited` too.', 0),
  heldByHolds: Dollars('Reserved by open holds.', 0),
  heldByDisputes: Dollars('Held for open disputes and fraud warnings.', 0),
  openHolds: Count('How many holds are open.', 0),
  movements: Type.Array(
    Closed({
      kind: MovementKind,
      count: Count('How many.', 1),
      amount: Dollars('Their sum, signed.', 35),
    }),
    { description: 'The parts of `credited`.' },
  ),
  consentCeiling: OrNull(
    Dollars('Dollars per UTC month.', 100),
    'How much the owner allows top-ups to take from the saved card in a month, or null.',
  ),
  processorUrl: OrNull(
    Text("A page of Stripe's dashboard.", 'https://dashboard.stripe.com/customers/cus_1'),
    "The customer in Stripe's dashboard, or null where there is none.",
  ),
  actions: Type.Array(
    Closed({
      kind: Word(['adjustment', 'refund'], 'What was done.'),
      amount: Dollars('Dollars, signed for an adjustment.', 5),
      topUpId: OrNull(Id('topUp', 'The top-up.'), 'The top-up that was refunded, or null.'),
      reason: Text('Why.', 'Goodwill after an outage.'),
      failure: OrNull(Type.String(), 'Why the refund failed, or null.'),
      operator: Text('Who did it.', 'ops@example.com'),
      createdAt: Timestamp,
    }),
    { description: 'What operators did to the account in the console, newest first.' },
  ),
});
export type AccountReply = Static<typeof AccountReply>;

export const MovementsReply = Closed({
  movements: Type.Array(
    Closed({
      id: Id('movement', 'The id of the movement.'),
      kind: MovementKind,
      amount: Dollars('Dollars, signed.', 25),
      topUpId: OrNull(Id('topUp', 'The top-up.'), 'The top-up that it belongs to, or null.'),
      reason: OrNull(Type.String(), 'Why an operator made it, or null.'),
      createdAt: Timestamp,
    }),
  ),
  ...pageMarks,
});
export type MovementsReply = Static<typeof MovementsReply>;

export const OperatorTopUpsReply = Closed({
  topUps: Type.Array(
    Closed({
      id: Id('topUp', 'The id of the top-up.'),
      amount: Dollars('Dollars credited or, while it is pending, requested.', 25),
      refunded: Dollars(
        'Dollars of it refunded to the card so far, also by refunds in progress.',
        0,
      ),
      refundable: Type.Boolean({
        description:
          'Whether its unspent part can be refunded. A bank that suspects fraud does not prevent that, a dispute does.',
        examples: [true],
      }),
      refundableAmount: Dollars(
        'Dollars that a refund without an amount would take from the balance now: what is unspent, in whole cents, without ' +
          'tax. If a fraud warning is open and the account owes money, it may be less.',
        2.5,
      ),
      status: Word(TOP_UP_STATUSES, 'The state of the top-up.'),
      method: Word(TOP_UP_METHODS, 'How it is paid.'),
      automatic: Type.Boolean({ description: 'Whether a charge started it.', examples: [false] }),
      failure: OrNull(Type.String(), 'Why it failed, or null.'),
      failedRefund: OrNull(
        Closed({
          amount: Dollars('Dollars, which the account can spend again.', 4),
          failure: Text('Why.', 'expired or canceled card'),
        }),
        'The newest refund of it that failed, or null.',
      ),
      createdAt: Timestamp,
      completedAt: OrNull(TimeOf('When it was credited.'), 'When it was credited, or null.'),
      ...links,
    }),
  ),
  ...pageMarks,
});
export type OperatorTopUpsReply = Static<typeof OperatorTopUpsReply>;

const chargeFields = {
  id: Id('charge', 'The id of the charge.'),
  tool: Text('The name of the tool.', 'search'),
  amount: Dollars('Dollars charged.'),
  refunded: Dollars('Dollars of it that were refunded.', 0),
  developerId: Id('developer', 'The developer who made the charge.'),
  createdAt: Timestamp,
};

export const OperatorChargeReply = Closed({
  ...chargeFields,
  consumerId: Id('consumer', 'The consumer who paid it.'),
});
export type OperatorChargeReply = Static<typeof OperatorChargeReply>;

export const OperatorChargesReply = Closed({
  charges: Type.Array(Closed(chargeFields)),
  ...pageMarks,
});
export type OperatorChargesReply = Static<typeof OperatorChargesReply>;

export const OperatorHoldsReply = Closed({ holds: Type.Array(ListedHold), ...pageMarks });
export type OperatorHoldsReply = Static<typeof OperatorHoldsReply>;

const Reason = {
  ...PrintableText(500, 'Goodwill after an outage.'),
  description: 'Why. It is stored with the change and never edited.',
};

export const AdjustmentBody = Closed({
  amount: DollarsAsked('Dollars to add, or to take (-2.50). The balance never goes below 0.', 5),
  reason: Reason,
});
export type AdjustmentBody = Static<typeof AdjustmentBody>;

export const AdjustmentReply = Closed({
  amount: Dollars('Dollars that were added, or taken.', 5),
  balance: Dollars('The balance after it. Less was added when some of it paid a debt.', 14.95),
  debt: Dollars('Dollars that are still owed.', 0),
});
export type AdjustmentReply = Static<typeof AdjustmentReply>;

export const TopUpRefundBody = Closed({
  amount: Type.Optional(
    DollarsAsked('Dollars in whole cents. Default: all of the top-up that is unspent.', 10),
  ),
  reason: Reason,
});
export type TopUpRefundBody = Static<typeof TopUpRefundBody>;

export const TopUpRefundReply = Closed({
  id: Id('topUpRefund', 'The id of the refund.'),
  topUpId: Id('topUp', 'The top-up that is refunded.'),
  amount: Dollars('Dollars that left the balance and go back to the card.', 10),
});
export type TopUpRefundReply = Static<typeof TopUpRefundReply>;

const differenceKinds = Object.keys(DIFFERENCES) as (keyof typeof DIFFERENCES)[];

export const OperatorStatusReply = Closed({
  postgres: Word(
    ['up', 'read_only', 'not_durable', 'down'],
    'Whether PostgreSQL responds. Farebox can charge only while it is `up`.',
  ),
  temporal: Word(
    ['up', 'no_namespace', 'down'],
    'Whether Temporal responds, and has the namespace of TEMPORAL_NAMESPACE.',
  ),
  waiting: Type.Array(
    Closed({
      what: Text('What is waiting.', 'outbox'),
      count: Count('How many.', 0),
      ageSeconds: Type.Number({ description: 'The age of the oldest.', examples: [0] }),
      oldest: Type.Array(
        Closed({
          id: Text(
            'The id of the top-up, the webhook endpoint, or what else it is about.',
            'tu_01a1fd6455e57aa3b31e95f51a48130e',
          ),
          accountId: OrNull(Id('account', 'The account.'), 'Whose it is, or null.'),
          detail: OrNull(
            Text('How it is paid, what reverses it, or the topic of a notice.', 'checkout'),
            'How a top-up is paid, what reverses it, or the topic of a notice; or null.',
          ),
          host: OrNull(
            Text('The host of its URL.', 'hooks.example.com'),
            'The host of a webhook endpoint, or null.',
          ),
          amount: OrNull(Dollars('Dollars.', 25), 'Its amount, or null.'),
          since: TimeOf('Since when it waits.'),
          ...links,
        }),
        {
          description:
            'At most 20 of them, the oldest first. Of `events`, the endpoints that they are for. Empty for `differences`, which are ' +
            "listed below, and for the service's own work: `expired_holds` and `rollup`.",
        },
      ),
    }),
    { description: 'Work that is waiting.' },
  ),
  stuck: Type.Array(
    Closed({
      kind: Word(['top_up', 'refund', 'notice'], 'What is stuck.'),
      detail: Text('Its method, state or topic.', 'checkout'),
      topUpId: OrNull(Id('topUp', 'The top-up.'), 'The top-up that it is about, or null.'),
      accountId: OrNull(Id('account', 'The account.'), 'Whose it is, or null.'),
      amount: OrNull(Dollars('Dollars.', 25), 'Its amount, or null.'),
      since: TimeOf('When it should have continued.'),
      ...links,
    }),
    { description: 'The oldest work that should have ended by now.' },
  ),
  differences: Type.Array(
    Closed({
      topUpId: Id('topUp', 'The top-up.'),
      kind: Word(differenceKinds, 'What differs.'),
      text: Text('The same, for people.', 'paid at Stripe but not credited'),
      processor: Dollars("Dollars in the processor's books.", 25),
      ledger: Dollars('Dollars in the ledger.', 0),
      since: TimeOf('When it was first found.'),
      paymentIntentIds: Type.Array(Text('The id of a payment.', 'pi_1'), {
        description: 'The payments that were compared, by their ids at Stripe.',
      }),
      creditedPaymentIntentId: OrNull(
        Text('The id of a payment.', 'pi_1'),
        'The payment that the top-up was credited for, or null.',
      ),
      ...links,
    }),
    { description: "Differences between the processor's books and the ledger." },
  ),
  reconciledUntil: OrNull(
    TimeOf('The time up to which the books have been compared.'),
    'The time up to which the books have been compared, or null before the first comparison.',
  ),
  examinations: Type.Array(
    Closed({
      part: Text('A part of `farebox doctor`.', 'balances'),
      endedAt: TimeOf('When it was last checked.'),
      findings: Type.Array(
        Closed({
          check: Text('The check that fails.', 'a balance is the sum of its movements'),
          subject: Text('For what.', 'consumer 01a1fd64'),
          detail: Text('What is wrong with it.', '10 and 12'),
          offenders: Count('The number of violations.', 1),
        }),
      ),
    }),
    { description: 'The last result of each part of `farebox doctor`, except `mail`.' },
  ),
});
export type OperatorStatusReply = Static<typeof OperatorStatusReply>;
