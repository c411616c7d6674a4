/** Schemas of a developer's tools (specification sections 2 and 4.2). */
import { Type, type Static } from 'typebox';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  Id,
  PlainText,
  Text,
  Timestamp,
  ToolName,
} from './shapes.ts';

const Description = PlainText(2_000);
const Price = Type.Union([Dollars('Dollars per call.'), Type.Null()], {
  description: 'Dollars per call. With null, each charge names its amount.',
  examples: [0.05],
});

const PriceAsked = Type.Union([DollarsAsked('Dollars per call.'), Type.Null()], {
  description:
    'Dollars per call, as a number or a decimal string. With null, each charge names its amount.',
  examples: [0.05],
});

export const ToolBody = Type.Object({
  name: ToolName,
  description: Type.Optional(Description),
  price: Type.Optional(PriceAsked),
});
export type ToolBody = Static<typeof ToolBody>;

/** What is left out stays as it is. The name stays: it is what charges and receipts say. */
export const ToolChanges = Type.Object({
  description: Type.Optional(Description),
  price: Type.Optional(PriceAsked),
  archived: Type.Optional(
    Type.Boolean({ description: 'True archives the tool, false restores it.', examples: [true] }),
  ),
});
export type ToolChanges = Static<typeof ToolChanges>;

const toolFields = {
  id: Id('tool', 'The id of the tool.'),
  name: Text('The name by which it is charged.', 'search'),
  description: Text('What it does.', 'Searches the web.'),
  price: Price,
};

export const ToolReply = Closed({ ...toolFields, createdAt: Timestamp });
export type ToolReply = Static<typeof ToolReply>;

export const ChangedToolReply = Closed({
  ...ToolReply.properties,
  archived: Type.Boolean({
    description: 'Whether the tool is archived: not listed, and its price not in force.',
    examples: [false],
  }),
});
export type ChangedToolReply = Static<typeof ChangedToolReply>;

export const ToolsQuery = Closed({
  name: Type.Optional(
    Type.String({ description: 'Only the tool that has this name.', examples: ['search'] }),
  ),
  archived: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'True lists the archived tools instead of those in use.',
      examples: [false],
    }),
  ),
});
export type ToolsQuery = Static<typeof ToolsQuery>;

export const ToolsReply = Closed({
  tools: Type.Array(
    Closed({
      ...toolFields,
      totalCharges: Count('How many charges it has had.'),
      totalRevenue: Dollars('Dollars that it has earned, less refunds.', 0.15),
    }),
  ),
});
export type ToolsReply = Static<typeof ToolsReply>;
