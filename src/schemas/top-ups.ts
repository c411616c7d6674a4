/** Schemas of top-ups, for the consumer who pays and the developer who is paid (specification sections 2 and 4). */
import { Type, type Static } from 'typebox';
import { TOP_UP_METHODS, TOP_UP_STATUSES } from '../domain/top-up.ts';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  Id,
  pageMarks,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

export const TopUpBody = Type.Object({
  amount: DollarsAsked(
    'Dollars, in whole cents, at most 999,999.99, or 750,000 where tax is added. The minimum is 0.50, or 5 through checkout.',
    10,
  ),
});
export type TopUpBody = Static<typeof TopUpBody>;

export const CheckoutBody = Type.Object({
  ...TopUpBody.properties,
  saveCard: Type.Optional(
    Type.Boolean({
      description:
        'Whether the checkout saves the card for direct and automatic top-ups. Needs the consent of the owner.',
      examples: [false],
    }),
  ),
});
export type CheckoutBody = Static<typeof CheckoutBody>;

const Status = Word(TOP_UP_STATUSES, 'The state of the top-up.');
const topUpId = Id('topUp', 'The id of the top-up.');

const sessionUrl = Text(
  'Send the consumer here to pay.',
  'https://checkout.stripe.com/c/pay/cs_live_a1',
);

/** Specification section 2, Top-up. */
export const TopUpReply = Closed({
  topUpId,
  amount: Dollars('Dollars credited or, while it is pending, requested.', 10),
  balance: Dollars('The balance when the response was sent.', 19.95),
  status: Status,
  sessionUrl: Type.Optional({
    ...sessionUrl,
    description:
      'Send the cardholder here, because the bank wants this payment confirmed. Present only while the payment waits for that.',
    examples: ['https://farebox.example/top-up/confirm?id=tu_1'],
  }),
});
export type TopUpReply = Static<typeof TopUpReply>;

export const CheckoutReply = Closed({
  sessionUrl: Type.Optional(sessionUrl),
  topUpId,
  status: Status,
});
export type CheckoutReply = Static<typeof CheckoutReply>;

export const TopUpQuoteQuery = Type.Object({
  amount: Type.String({
    description: 'Dollars of the top-up, as in `POST /v1/top-up`.',
    examples: ['10'],
  }),
});
export type TopUpQuoteQuery = Static<typeof TopUpQuoteQuery>;

const tax = Type.Union([Dollars('Dollars.', 0), Type.Null()], {
  description:
    'The tax in dollars, which is paid on top of `amount`. Null while it is unknown, because the checkout has yet to ask for the address.',
  examples: [0],
});

export const TopUpQuoteReply = Closed({
  amount: Dollars('Dollars that would be credited.', 10),
  tax,
  total: Type.Union([Dollars('Dollars.', 10), Type.Null()], {
    description:
      'Dollars that would be paid: `amount` plus `tax`. Null while the tax is not known.',
    examples: [10],
  }),
});
export type TopUpQuoteReply = Static<typeof TopUpQuoteReply>;

export const TopUpRecord = Closed({
  id: topUpId,
  amount: Dollars('Dollars credited or, while it is pending, requested.', 10),
  refunded: Dollars('Dollars of it refunded to the card so far, also by refunds in progress.', 0),
  tax: Type.Optional(tax),
  status: Status,
  method: Word(TOP_UP_METHODS, 'How it is paid.'),
  automatic: Type.Boolean({
    description: 'Whether a charge triggered it, rather than a request.',
    examples: [false],
  }),
  createdAt: Timestamp,
  completedAt: Type.Union([TimeOf('When it was credited.'), Type.Null()], {
    description: 'When it was credited, or null.',
    examples: [null],
  }),
  failure: Type.Union(
    [
      Closed({
        code: Text('An error code.', 'card_declined'),
        message: Text('The reason, for people.', 'Your card was declined.'),
      }),
      Type.Null(),
    ],
    { description: 'Why it failed, or null.', examples: [null] },
  ),
  sessionUrl: Type.Optional({
    ...sessionUrl,
    description:
      'Where the consumer can pay or, for a direct top-up, confirm the payment at the bank. Present only while that is possible.',
  }),
});
export type TopUpRecord = Static<typeof TopUpRecord>;

export const TopUpsReply = Closed({ topUps: Type.Array(TopUpRecord), ...pageMarks });
export type TopUpsReply = Static<typeof TopUpsReply>;

/** A top-up that paid for charges of the caller's tools; the oldest top-ups are spent first. */
const DeveloperTopUp = Closed({
  id: topUpId,
  consumerId: Id('consumer', 'The consumer who topped up.'),
  amount: Dollars('Dollars of the complete top-up.', 10),
  status: Status,
  createdAt: Timestamp,
  charged: Dollars('Dollars of it spent on your tools.', 0.05),
  charges: Count('How many charges of your tools it paid for.', 1),
});

export const DeveloperTopUpsReply = Closed({ topUps: Type.Array(DeveloperTopUp), ...pageMarks });
export type DeveloperTopUpsReply = Static<typeof DeveloperTopUpsReply>;
