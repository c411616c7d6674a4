/** Schemas of monthly statements. All that is listed adds up from the opening to the closing figure. */
import { Type, type Static } from 'typebox';
import { Closed, Count, Dollars, Id, Text, TimeOf, Timestamp } from './shapes.ts';

/** A month that is malformed or to come is refused by the handler, which knows the time. */
export const Month = Type.String({
  pattern: '^\\d{4}-(0[1-9]|1[0-2])$',
  description: 'A month in UTC: this one or one before.',
  examples: ['2026-11'],
});

const Day = (description: string) =>
  Type.String({ format: 'date', description, examples: ['2026-11-21'] });

const monthFields = {
  month: Month,
  from: TimeOf('The beginning of the month.', '2026-11-01T00:00:00.000Z'),
  to: TimeOf('The beginning of the next month.', '2026-12-01T00:00:00.000Z'),
  complete: Type.Boolean({
    description: 'False while the month is not over: this is the statement so far.',
    examples: [false],
  }),
};

export const ConsumerStatementReply = Closed({
  ...monthFields,
  consumerId: Id('consumer', 'Your consumer id.'),
  openingBalance: Dollars('The balance when the month began, disputed money included.', 0),
  movements: Type.Array(
    Closed({
      kind: Text('`top_up`, `refund`, `dispute`, `charge_refund`, `adjustment` ...', 'top_up'),
      amount: Dollars('Dollars. Negative when they were taken from the balance.', 10),
      topUpId: Type.Union([Id('topUp', 'The top-up.'), Type.Null()], {
        description: 'The top-up that it belongs to, or null.',
        examples: ['tu_01a1fd6455e57aa3b31e95f51a48130e'],
      }),
      reason: Type.Union([Type.String(), Type.Null()], {
        description: 'Why, or null. For a `charge_refund`, the id of the charge.',
        examples: [null],
      }),
      createdAt: Timestamp,
    }),
    { description: 'Everything but charges that changed the balance.' },
  ),
  charges: Type.Array(
    Closed({
      tool: Text('The name of the tool.', 'search'),
      charges: Count('How many charges.', 1),
      amount: Dollars('Dollars spent.', 0.05),
    }),
    { description: 'What was spent, by tool.' },
  ),
  closingBalance: Dollars('The opening balance and the movements, less the charges.', 9.95),
});
export type ConsumerStatementReply = Static<typeof ConsumerStatementReply>;

export const DeveloperStatementReply = Closed({
  ...monthFields,
  developerId: Id('developer', 'Your developer id.'),
  openingEarnings: Dollars('Dollars earned before the month.', 12),
  earned: Type.Array(
    Closed({
      day: Day('The UTC day.'),
      tool: Text('The name of the tool.', 'search'),
      charges: Count('How many charges.', 11),
      amount: Dollars('Dollars charged, refunded or not.', 0.55),
    }),
    { description: 'What was charged, by day and tool.' },
  ),
  refunds: Type.Array(
    Closed({
      day: Day('The UTC day on which the refunds were made.'),
      tool: Text('The name of the tool.', 'search'),
      refunds: Count('How many refunds.', 1),
      amount: Dollars('Dollars refunded.', 0.05),
    }),
    { description: 'What was refunded, by day and tool.' },
  ),
  closingEarnings: Dollars('The opening earnings and what was earned, less refunds.', 12.5),
});
export type DeveloperStatementReply = Static<typeof DeveloperStatementReply>;

/** The statement of the role that the key is for. */
export const StatementReply = Type.Union([ConsumerStatementReply, DeveloperStatementReply]);
export type StatementReply = Static<typeof StatementReply>;
