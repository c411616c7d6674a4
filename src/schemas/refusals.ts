/** Schemas of refused requests, as the developer sees them and as the owner of a spend key sees them. */
import { Type, type Static } from 'typebox';
import { Closed, Count, Id, OrNull, Text, TimeOf } from './shapes.ts';

export const RefusalsQuery = Closed({
  hours: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 720,
      default: 24,
      description:
        'How many hours back, from 1 to 720. The hour in which that time lies counts in full.',
      examples: [24],
    }),
  ),
});
export type RefusalsQuery = Static<typeof RefusalsQuery>;

const code = Text('The error code.', 'insufficient_balance');
const counted = { count: Count('How often.', 3), lastAt: TimeOf('When it last happened.') };

export const RefusalsReply = Closed({
  refusals: Type.Array(
    Closed({
      code,
      tool: Type.Union([Type.String(), Type.Null()], {
        description:
          'The tool, or null. `(other)` after the first 50 pairs of code and tool in an hour.',
        examples: ['search'],
      }),
      ...counted,
      requestIds: Type.Array(Text('A request id.', 'req_01a1fd6455e57aa3b31e95f51a48130e'), {
        description: 'The ids of the last requests, newest first. Find them in the log.',
      }),
    }),
    { description: 'By code and tool, most frequent first, at most 200.' },
  ),
});
export type RefusalsReply = Static<typeof RefusalsReply>;

export const BudgetRefusalsReply = Closed({
  budgetId: Id('budget', 'The id of the budget.'),
  refusals: Type.Array(
    Closed({
      keyId: Id('key', 'The spend key.'),
      keyName: OrNull(Type.String(), 'Its name, or null.'),
      code,
      ...counted,
    }),
    { description: 'By key and code, most frequent first, at most 200.' },
  ),
});
export type BudgetRefusalsReply = Static<typeof BudgetRefusalsReply>;
