/** Schemas of a developer's tools (specification sections 2 and 4.2). */
import { Type, type Static } from 'typebox';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  Id,
  pageMarks,
  pageParameters,
  PlainText,
  Text,
  Timestamp,
  ToolName,
} from './shapes.ts';

const Description = PlainText(2_000);
const Price = Type.Union([Dollars('Dollars per call.'), Type.Null()], {
  description: 'Dollars per call. If null, each charge must state its amount.',
  examples: [0.05],
});

const PriceAsked = Type.Union([DollarsAsked('Dollars per call.'), Type.Null()], {
  description:
    'Dollars per call, as a number or a decimal string. If null, each charge must state its amount.',
  examples: [0.05],
});

export const ToolBody = Type.Object({
  name: ToolName,
  description: Type.Optional(Description),
  price: Type.Optional(PriceAsked),
});
export type ToolBody = Static<typeof ToolBody>;

/** Omitted members are not changed. The name cannot change, because charges and receipts contain it. */
export const ToolChanges = Closed({
  description: Type.Optional(Description),
  price: Type.Optional(PriceAsked),
  archived: Type.Optional(
    Type.Boolean({ description: 'True archives the tool, false restores it.', examples: [true] }),
  ),
});
export type ToolChanges = Static<typeof ToolChanges>;

const toolFields = {
  id: Id('tool', 'The id of the tool.'),
  name: Text('The name used in charges.', 'search'),
  description: Text('What it does.', 'Searches the web.'),
  price: Price,
};

export const ToolReply = Closed({ ...toolFields, createdAt: Timestamp });
export type ToolReply = Static<typeof ToolReply>;

export const ChangedToolReply = Closed({
  ...ToolReply.properties,
  archived: Type.Boolean({
    description:
      'Whether the tool is archived. An archived tool is not listed, and its price does not apply.',
    examples: [false],
  }),
});
export type ChangedToolReply = Static<typeof ChangedToolReply>;

export const ToolsQuery = Closed({
  ...pageParameters,
  name: Type.Optional(
    Type.String({ description: 'Only the tool with this name.', examples: ['search'] }),
  ),
  archived: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'If true, lists the archived tools instead of those in use.',
      examples: [false],
    }),
  ),
});
export type ToolsQuery = Static<typeof ToolsQuery>;

export const ToolsReply = Closed({
  tools: Type.Array(
    Closed({
      ...toolFields,
      totalCharges: Count('How many times it has been charged.'),
      totalRevenue: Dollars('Dollars it has earned, less refunds.', 0.15),
    }),
  ),
  ...pageMarks,
});
export type ToolsReply = Static<typeof ToolsReply>;
