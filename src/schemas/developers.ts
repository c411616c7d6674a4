/** Wire shapes of the developer's endpoints (specification section 4.2). */
import { Type, type Static } from 'typebox';
import { Dollars, PageMarks, PlainText, Timestamp, ToolName } from './shapes.ts';

export const ToolBody = Type.Object({
  name: ToolName,
  description: Type.Optional(PlainText(2_000)),
  price: Type.Optional(
    Type.Union([Dollars('Per call; left out or null, a charge names its amount'), Type.Null()]),
  ),
});
export type ToolBody = Static<typeof ToolBody>;

const Price = Type.Union([Dollars('Per call'), Type.Null()]);
const toolFields = {
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  price: Price,
};

export const ToolAnswer = Type.Object({ ...toolFields, createdAt: Timestamp });

export const ToolsAnswer = Type.Object({
  tools: Type.Array(
    Type.Object({
      ...toolFields,
      totalCharges: Type.Integer(),
      totalRevenue: Dollars('All that it earned'),
    }),
  ),
});

/** Specification section 2, Earnings summary. */
export const EarningsAnswer = Type.Object({
  developerId: Type.String(),
  totalEarnings: Dollars('Of all time'),
  todayEarnings: Dollars('Since 00:00 UTC'),
  byTool: Type.Record(Type.String(), Dollars('Of all time')),
});

/** Top-ups of which a part was spent on the caller's tools, first in, first out. */
export const DeveloperTopUpsAnswer = Type.Object({
  topUps: Type.Array(
    Type.Object({
      id: Type.String(),
      consumerId: Type.String(),
      amount: Dollars('Of the whole top-up'),
      status: Type.String(),
      createdAt: Timestamp,
      charged: Dollars("What of it was spent on the caller's tools"),
      charges: Type.Integer({ description: 'In how many charges' }),
    }),
  ),
  ...PageMarks,
});
