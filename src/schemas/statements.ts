/** Wire shapes of monthly statements. All that is listed adds up from the opening to the closing figure. */
import { Type } from 'typebox';
import { Dollars, Timestamp } from './shapes.ts';

const monthFields = {
  month: Type.String({ description: 'A UTC month, such as 2026-11' }),
  from: Timestamp,
  to: Type.String({ format: 'date-time', description: 'The beginning of the next month' }),
  complete: Type.Boolean({
    description: 'False: the month is not over, and this is its part so far',
  }),
};

export const ConsumerStatementAnswer = Type.Object({
  ...monthFields,
  consumerId: Type.String(),
  openingBalance: Dollars('Money held by a dispute is in it, until it is taken'),
  movements: Type.Array(
    Type.Object({
      kind: Type.String({ description: 'top_up, refund, dispute, charge_refund, adjustment ...' }),
      amount: Dollars('Negative: taken from the balance'),
      topUpId: Type.Union([Type.String(), Type.Null()]),
      reason: Type.Union([Type.String(), Type.Null()], {
        description: 'Of a charge_refund, the charge',
      }),
      createdAt: Timestamp,
    }),
  ),
  charges: Type.Array(
    Type.Object({ tool: Type.String(), charges: Type.Integer(), amount: Dollars('Spent') }),
  ),
  closingBalance: Dollars('Opening balance, and movements, less charges'),
});

export const DeveloperStatementAnswer = Type.Object({
  ...monthFields,
  developerId: Type.String(),
  openingEarnings: Dollars('All that was earned before'),
  earned: Type.Array(
    Type.Object({
      day: Type.String({ description: 'A UTC day, such as 2026-11-21' }),
      tool: Type.String(),
      charges: Type.Integer(),
      amount: Dollars('By charges, whether they were refunded or not'),
    }),
  ),
  refunds: Type.Array(
    Type.Object({
      day: Type.String({ description: 'On which they were made' }),
      tool: Type.String(),
      refunds: Type.Integer(),
      amount: Dollars('Given back'),
    }),
  ),
  closingEarnings: Dollars('Opening earnings, and what was earned, less refunds'),
});
