/** Schemas of monthly statements. The listed amounts add up from the opening to the closing figure. */
import { Type, type Static } from 'typebox';
import { Closed, Count, Dollars, Id, Patterned, Text, TimeOf, Timestamp, Word } from './shapes.ts';

/** The handler refuses malformed and future months, because it knows the time. */
export const Month = Patterned('^\\d{4}-(0[1-9]|1[0-2])$', 'a month such as 2026-11', {
  description: 'A UTC month: the current or an earlier one.',
  examples: ['2026-11'],
});

const Day = (description: string) =>
  Type.String({ format: 'date', description, examples: ['2026-11-21'] });

const monthFields = {
  month: Month,
  from: TimeOf('The beginning of the month.', '2026-11-01T00:00:00.000Z'),
  to: TimeOf('The beginning of the next month.', '2026-12-01T00:00:00.000Z'),
  complete: Type.Boolean({
    description:
      'Whether the statement is final. False until a minute after the end of the month, or longer while a commit of that time waits in PostgreSQL. A complete statement never changes, unless the clock of the service is set back over the end of the month.',
    examples: [false],
  }),
};

export const ConsumerStatementReply = Closed({
  ...monthFields,
  consumerId: Id('consumer', 'Your consumer id.'),
  openingBalance: Dollars(
    'The balance at the beginning of the month, including disputed money.',
    0,
  ),
  movements: Type.Array(
    Closed({
      kind: Text('`top_up`, `refund`, `dispute`, `charge_refund`, `adjustment` ...', 'top_up'),
      amount: Dollars('Dollars. Negative when taken from the balance.', 10),
      tax: Type.Optional(
        Dollars(
          'Tax that was paid with a top-up on top of `amount`; negative when a refund or a lost dispute returned it, and positive again when that was reversed. Not part of the balance.',
          0.89,
        ),
      ),
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
    {
      description:
        'All changes of the balance except charges. If the month has more than 1,000 of a `kind`, they are added up into one entry for each UTC day, without `topUpId` and `reason`.',
    },
  ),
  charges: Type.Array(
    Closed({
      tool: Text('The name of the tool.', 'search'),
      charges: Count('How many charges.', 1),
      amount: Dollars('Dollars spent.', 0.05),
    }),
    { description: 'Dollars spent, by tool.' },
  ),
  closingBalance: Dollars(
    'The opening balance plus the movements, less the charges. It includes what is on hold.',
    9.95,
  ),
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
    { description: 'Dollars charged, by day and tool.' },
  ),
  refunds: Type.Array(
    Closed({
      day: Day('The UTC day on which the refunds were made.'),
      tool: Text('The name of the tool.', 'search'),
      refunds: Count('How many refunds.', 1),
      amount: Dollars('Dollars refunded.', 0.05),
    }),
    { description: 'Dollars refunded, by day and tool.' },
  ),
  closingEarnings: Dollars('The opening earnings plus the dollars earned, less refunds.', 12.5),
});
export type DeveloperStatementReply = Static<typeof DeveloperStatementReply>;

/** The statement for the key's role. */
export const StatementReply = Type.Union([ConsumerStatementReply, DeveloperStatementReply]);
export type StatementReply = Static<typeof StatementReply>;

export const StatementQuery = Closed({
  as: Type.Optional(
    Word(
      ['consumer', 'developer'],
      'Which statement to return to a console session, which has both roles. Not needed with a key.',
    ),
  ),
});
