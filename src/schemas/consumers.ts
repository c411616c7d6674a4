/** Wire shapes of the consumer's endpoints (specification section 4.1). */
import { Type, type Static } from 'typebox';
import { AUTO_TOP_UP_STATUSES, TOP_UP_METHODS, TOP_UP_STATUSES } from '../domain/top-up.ts';
import { Dollars, DollarsAsked, PageMarks, Timestamp } from './shapes.ts';

export const BalanceAnswer = Type.Object({
  balance: Dollars('What can be spent now'),
  debt: Dollars('What refunds and disputes took that was spent; the next credits pay it'),
  consumerId: Type.String(),
  autoTopUp: Type.Object(
    {
      status: Type.Union(AUTO_TOP_UP_STATUSES.map((status) => Type.Literal(status))),
      reason: Type.Union([Type.String(), Type.Null()], {
        description:
          'Why one is put off, or why they turned themselves off: a code, such as card_declined',
      }),
    },
    { description: "Top-ups from the saved card, unasked; the owner's to set" },
  ),
});

export const TopUpBody = Type.Object({
  amount: DollarsAsked('Whole cents; 0.50 (through checkout 5) to 999,999.99'),
});
export type TopUpBody = Static<typeof TopUpBody>;

const Status = Type.Union(TOP_UP_STATUSES.map((status) => Type.Literal(status)));
const Failure = Type.Union([
  Type.Object({ code: Type.String(), message: Type.String() }),
  Type.Null(),
]);

/** Specification section 2, Top-up. */
export const TopUpAnswer = Type.Object({
  topUpId: Type.String(),
  amount: Dollars('Credited, or asked for'),
  balance: Dollars('The balance when this was answered'),
  status: Status,
});

export const CheckoutAnswer = Type.Object({
  sessionUrl: Type.Optional(Type.String({ description: 'Send the consumer here to pay' })),
  topUpId: Type.String(),
  status: Type.Optional(Status),
});

export const TopUpRecord = Type.Object({
  id: Type.String(),
  amount: Dollars('Credited, or asked for'),
  status: Status,
  method: Type.Union(TOP_UP_METHODS.map((method) => Type.Literal(method))),
  automatic: Type.Boolean({ description: 'Asked for by a charge, and not by a request' }),
  createdAt: Timestamp,
  completedAt: Type.Union([Timestamp, Type.Null()]),
  failure: Failure,
  sessionUrl: Type.Optional(Type.String({ description: 'While it can still be paid' })),
});

export const TopUpsAnswer = Type.Object({ topUps: Type.Array(TopUpRecord), ...PageMarks });
