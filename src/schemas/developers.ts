/** Wire shapes of the developer's endpoints (specification section 4.2). */
import { Type, type Static } from 'typebox';
import { Dollars, PageMarks, PlainText, Timestamp, ToolName } from './shapes.ts';

const Description = PlainText(2_000);
const Price = Type.Union([Dollars('Per call; null: a charge names its amount'), Type.Null()]);

export const ToolBody = Type.Object({
  name: ToolName,
  description: Type.Optional(Description),
  price: Type.Optional(Price),
});
export type ToolBody = Static<typeof ToolBody>;

/** What is left out stays as it is. The name stays: it is what charges and receipts say. */
export const ToolChanges = Type.Object({
  description: Type.Optional(Description),
  price: Type.Optional(Price),
  archived: Type.Optional(Type.Boolean()),
});
export type ToolChanges = Static<typeof ToolChanges>;

const toolFields = {
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  price: Price,
};

export const ToolAnswer = Type.Object({ ...toolFields, createdAt: Timestamp });
export const ChangedToolAnswer = Type.Object({
  ...ToolAnswer.properties,
  archived: Type.Boolean({ description: 'Listed only when asked for; its price is not charged' }),
});

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
  totalEarnings: Dollars('From `from` to `to`; of all time without these'),
  todayEarnings: Dollars('Since 00:00 UTC'),
  byTool: Type.Record(Type.String(), Dollars('From `from` to `to`; of all time without these')),
  series: Type.Optional(
    Type.Array(
      Type.Object({
        from: Timestamp,
        earnings: Dollars('Of this interval'),
        charges: Type.Integer(),
      }),
      { description: 'With `interval=hour` or `interval=day`: each of them since `from`' },
    ),
  ),
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

/** What a developer sets for itself. */
export const DeveloperChanges = Type.Object({
  returnUrl: Type.Optional(
    Type.Union([PlainText(2_000), Type.Null()], {
      description: 'Where people return to after they topped up through a link of a refusal',
    }),
  ),
});
export type DeveloperChanges = Static<typeof DeveloperChanges>;

export const DeveloperAnswer = Type.Object({
  developerId: Type.String(),
  returnUrl: Type.Union([Type.String(), Type.Null()]),
});
