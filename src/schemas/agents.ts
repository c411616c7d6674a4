/** Wire shapes of agents and their discovery (legacy, specification section 4.4). */
import { Type, type Static } from 'typebox';
import { PlainText, PrintableText, Timestamp } from './shapes.ts';

const LIST_ITEMS_MAX = 50;

/** What an agent can do, or is asked for: `translate`, `weather.forecast`, `book a table`. */
const Names = Type.Array(PrintableText(100), { maxItems: LIST_ITEMS_MAX });

const agentFields = {
  id: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$',
    description: 'Chosen by who registers it; 1 to 100 letters, digits and . _ : -',
  }),
  name: PrintableText(100),
  protocol: Type.String({
    pattern: '^[a-z0-9-]{1,30}$',
    description: 'Such as `mcp`, `a2a` or `http`; 1 to 30 small letters, digits and -',
  }),
  endpoint: Type.String({
    pattern: '^[^\\s\\p{C}]{1,2000}$',
    description: 'An http(s) URL on a public address, without credentials',
  }),
};

export const AgentBody = Type.Object({
  ...agentFields,
  description: Type.Optional(PlainText(2_000)),
  capabilities: Type.Optional(Names),
  intents: Type.Optional(Names),
});
export type AgentBody = Static<typeof AgentBody>;

export const AgentAnswer = Type.Object({
  ...agentFields,
  description: Type.String(),
  capabilities: Names,
  intents: Names,
  createdAt: Timestamp,
});

const QUERY = {
  pattern: '^(?=[\\s\\S]*\\S)[^\\u0000\\p{Cs}]*$',
  maxLength: 1_000,
  description: 'What is looked for, in words; 1 to 1,000 characters, not all of them blank',
};

export const TOP_K_MAX = 50;
export const TOP_K_DEFAULT = 5;

export const ResolveBody = Type.Object({
  query: Type.String(QUERY),
  topK: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: TOP_K_MAX,
      description: `At most so many results; left out, ${TOP_K_DEFAULT}`,
    }),
  ),
});
export type ResolveBody = Static<typeof ResolveBody>;

export const IntentBody = Type.Object({ query: Type.String(QUERY) });
export type IntentBody = Static<typeof IntentBody>;

const Share = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });

const Intent = Type.Object({
  name: Type.String({
    description:
      'The intent or capability, of those that agents registered, that fits best; `unknown` when none ' +
      'has a word of the query',
  }),
  confidence: Share('0 for `unknown`, 1 for the same words'),
});

export const ResolveAnswer = Type.Object({
  results: Type.Array(
    Type.Object({
      agentId: Type.String(),
      score: Share('How much of the query is in the agent, its name counting most'),
      protocol: Type.String(),
    }),
    { maxItems: TOP_K_MAX, description: 'The best first' },
  ),
  intent: Intent,
});

export const IntentAnswer = Type.Object({ intent: Intent });
