/** Schemas of agents and their discovery (legacy, specification section 4.4). */
import { Type, type Static } from 'typebox';
import { Closed, Patterned, PlainText, PrintableText, Text, Timestamp } from './shapes.ts';

const LIST_ITEMS_MAX = 50;

/** What an agent can do, or is asked to do: `translate`, `weather.forecast`, `book a table`. */
const Names = Type.Array(PrintableText(100, 'weather.forecast'), { maxItems: LIST_ITEMS_MAX });

const agentFields = {
  id: Patterned(
    '^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$',
    '1 to 100 letters, digits and . _ : -, beginning with a letter or a digit',
    {
      description: 'An id of your choice: 1 to 100 letters, digits and . _ : -',
      examples: ['weather'],
    },
  ),
  name: PrintableText(100, 'Weather'),
  protocol: Patterned('^[A-Za-z0-9-]{1,30}$', '1 to 30 letters, digits and -', {
    description:
      'How the agent is called: 1 to 30 letters, digits and -. Agents of `http`, `mcp` and `a2a`, in letters of either ' +
      'case, can be invoked; agents of other protocols can only be found.',
    examples: ['http'],
  }),
  endpoint: Patterned(
    '^[^\\s\\p{C}]{1,2000}$',
    'a URL of 1 to 2000 characters, without spaces or control characters',
    {
      description: 'An http or https URL on a public address, without credentials.',
      examples: ['https://weather.example.com/invoke'],
    },
  ),
};

export const AgentBody = Type.Object({
  ...agentFields,
  description: Type.Optional(PlainText(2_000, 'Forecasts the weather.')),
  capabilities: Type.Optional(Names),
  intents: Type.Optional(Names),
});
export type AgentBody = Static<typeof AgentBody>;

export const AgentReply = Closed({
  ...agentFields,
  description: Text('What the agent does.', 'Forecasts the weather.'),
  capabilities: Names,
  intents: Names,
  createdAt: Timestamp,
});
export type AgentReply = Static<typeof AgentReply>;

const Query = Patterned(
  '^(?=[\\s\\S]*\\S)[^\\u0000\\p{Cs}]*$',
  'text of 1 to 1000 characters, not all blank, without NUL or unpaired surrogates',
  {
    minLength: 1,
    maxLength: 1_000,
    description: 'What you are looking for, in words: 1 to 1,000 characters, not all blank.',
    examples: ['weather forecast'],
  },
);

export const TOP_K_MAX = 50;
export const TOP_K_DEFAULT = 5;

export const ResolveBody = Type.Object({
  query: Query,
  topK: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: TOP_K_MAX,
      default: TOP_K_DEFAULT,
      description: 'The largest number of results.',
      examples: [5],
    }),
  ),
});
export type ResolveBody = Static<typeof ResolveBody>;

export const IntentBody = Type.Object({ query: Query });
export type IntentBody = Static<typeof IntentBody>;

const Share = (description: string, example: number) =>
  Type.Number({ minimum: 0, maximum: 1, description, examples: [example] });

const Intent = Closed({
  name: Text(
    'The registered intent or capability that matches the query best, or `unknown` when none shares a word with it.',
    'weather.forecast',
  ),
  confidence: Share('From 0 for `unknown` to 1 for identical words.', 1),
});

export const ResolveReply = Closed({
  results: Type.Array(
    Closed({
      agentId: Text('The id of the agent.', 'weather'),
      score: Share('How much of the query the agent matches. Its name counts most.', 0.92),
      protocol: Text('How the agent is called.', 'http'),
    }),
    { maxItems: TOP_K_MAX, description: 'Best match first.' },
  ),
  intent: Intent,
});
export type ResolveReply = Static<typeof ResolveReply>;

export const IntentReply = Closed({ intent: Intent });
export type IntentReply = Static<typeof IntentReply>;
