/** Schemas of a developer's tools (specification sections 2 and 4.2). */
import { Type, type Static } from 'typebox';
import { CARD_UNITS_MAX, UNITS_MAX } from '../domain/rate-card.ts';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  Id,
  MUST_BE,
  OrNull,
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

const UNIT_PATTERN = '^[A-Za-z][A-Za-z0-9_.-]{0,39}$';
const OF_UNITS = {
  minProperties: 1,
  maxProperties: CARD_UNITS_MAX,
  additionalProperties: false,
  [MUST_BE]: 'an object whose names have 1 to 40 letters, digits and _.-, beginning with a letter',
} as const;

/** How many of each unit a call used. */
export const Units = Type.Record(
  Type.String({ pattern: UNIT_PATTERN }),
  Type.Integer({ minimum: 0, maximum: UNITS_MAX }),
  {
    ...OF_UNITS,
    description:
      "How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.",
    examples: [{ input: 1_200, output: 350 }],
  },
);

const CARD_EXAMPLE = { input: 0.0000025, output: 0.00001 };
const Card = Type.Record(Type.String({ pattern: UNIT_PATTERN }), Type.Number(), {
  ...OF_UNITS,
  description: 'The rate card, if the tool has one: dollars per unit, by the name of the unit.',
  examples: [CARD_EXAMPLE],
});
/** In what was charged by a card. */
export const CardVersion = Type.Integer({
  minimum: 1,
  description: "The version of the tool's rate card that priced it, if units were charged.",
  examples: [1],
});
const CardAsked = OrNull(
  Type.Record(
    Type.String({ pattern: UNIT_PATTERN }),
    Type.Union([Type.Number(), Type.String()]),
    OF_UNITS,
  ),
  'The rate card: dollars per unit, by the name of the unit, as numbers or decimal strings from 0 to 1,000 with at most twelve decimals. Charges that state `units` use it. Null: no card.',
  CARD_EXAMPLE,
);

const PriceAsked = Type.Union([DollarsAsked('Dollars per call.'), Type.Null()], {
  description:
    'Dollars per call, as a number or a decimal string. If null, each charge must state its amount.',
  examples: [0.05],
});

export const ToolBody = Type.Object({
  name: ToolName,
  description: Type.Optional(Description),
  price: Type.Optional(PriceAsked),
  card: Type.Optional(CardAsked),
});
export type ToolBody = Static<typeof ToolBody>;

/** Omitted members are not changed. The name cannot change, because charges and receipts contain it. */
export const ToolChanges = Closed({
  description: Type.Optional(Description),
  price: Type.Optional(PriceAsked),
  card: Type.Optional(CardAsked),
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
  card: Type.Optional(Card),
  cardVersion: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'The version of the card, which receipts state. Each change makes a new one, from 1.',
      examples: [1],
    }),
  ),
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

export const CardNumber = Type.Integer({
  minimum: 1,
  description: 'The version of the card, from 1.',
  examples: [1],
});
export const RateCardReply = Closed({
  card: Type.Record(Type.String({ pattern: UNIT_PATTERN }), Type.Number(), {
    ...OF_UNITS,
    description: 'Dollars per unit, by the name of the unit.',
    examples: [CARD_EXAMPLE],
  }),
  cardVersion: CardNumber,
  createdAt: Timestamp,
});
export type RateCardReply = Static<typeof RateCardReply>;

/** What a charge would cost. */
export const QuoteBody = Closed({
  tool: ToolName,
  units: Type.Optional(Units),
});
export type QuoteBody = Static<typeof QuoteBody>;

export const QuoteReply = Closed({
  tool: Text('The name of the tool.', 'llm'),
  amount: Dollars('Dollars that a charge with these units would take now.', 0.0065),
  cardVersion: OrNull(
    Type.Integer({ minimum: 1 }),
    'The version of the rate card. Null: the price of the tool was quoted.',
    1,
  ),
});
export type QuoteReply = Static<typeof QuoteReply>;
