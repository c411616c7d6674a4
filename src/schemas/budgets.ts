/** Schemas of budgets and spend keys. The bodies are closed: a limit that is misspelled must not be ignored. */
import { Type, type Static } from 'typebox';
import { APPROVED_DEVELOPERS_MAX } from '../domain/approval.ts';
import { BUDGET_DEPTH_MAX, BUDGET_STATUSES, USAGE_GROUPS, WINDOW_UNITS } from '../domain/budget.ts';
import { Metadata } from './charges.ts';
import { KeyReply, releaseHolds } from './keys.ts';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  DollarsAskedOrNull,
  Id,
  OrNull,
  pageMarks,
  pageParameters,
  PrintableText,
  Text,
  TimeOf,
  timeRange,
  Word,
} from './shapes.ts';

export const NAME_MAX = 100;
/** The length of a list of tools or developers: each call is compared with all of them at once, in memory. */
const ALLOWED_MAX = 100;
/** `dev_` and 32 digits, a slash, and a name of 100 characters. */
export const TOOL_MAX = 137;

const Unit = Word(
  WINDOW_UNITS,
  'The calendar unit, in UTC. A week begins on Monday. The limit starts over with each unit.',
);
const limitAsked = (description: string, example: number) =>
  DollarsAskedOrNull(
    `${description} A number, or a decimal string such as "0.05". Null: no limit.`,
    example,
  );

const settings = {
  limit: Type.Optional(limitAsked('Dollars that can be spent in total.', 50)),
  window: Type.Optional(
    OrNull(
      Closed({ per: Unit, limit: DollarsAsked('Dollars that can be spent in each window.', 5) }),
      'A limit for each hour, day, week or month. Null: none.',
      { per: 'day', limit: 5 },
    ),
  ),
  maxPerCall: Type.Optional(
    limitAsked('The most that one charge or hold may take, in dollars.', 0.5),
  ),
  allowLeases: Type.Optional(
    Type.Boolean({
      description:
        'Whether its keys may be leased: clients of developers then decide calls by themselves, and charge them ' +
        'afterwards. Every budget above must allow it too. Default: false.',
      examples: [false],
    }),
  ),
  maxLease: Type.Optional(limitAsked('Dollars that one lease may reserve.', 2)),
  tools: Type.Optional(
    OrNull(
      Type.Array(PrintableText(TOOL_MAX), {
        minItems: 1,
        maxItems: ALLOWED_MAX,
        uniqueItems: true,
      }),
      'The only tools that may be charged: names, or `dev_.../name` for the tool of one developer. Null: all.',
    ),
  ),
  developers: Type.Optional(
    OrNull(
      Type.Array(Id('developer', 'A developer.'), {
        minItems: 1,
        maxItems: ALLOWED_MAX,
        uniqueItems: true,
      }),
      'The only developers that may charge. Null: all.',
    ),
  ),
  approveDevelopers: Type.Optional(
    Type.Boolean({
      description:
        'Whether a developer is refused until the owner has approved it for this budget. Default: false.',
      examples: [true],
    }),
  ),
  approvedDevelopers: Type.Optional(
    Type.Array(Id('developer', 'A developer.'), {
      maxItems: APPROVED_DEVELOPERS_MAX,
      uniqueItems: true,
      description: 'The developers that the owner has approved for this budget.',
      examples: [[]],
    }),
  ),
  mayDelegate: Type.Optional(
    Type.Boolean({
      description:
        'Whether the keys of this budget may create budgets and keys below it. Default: false.',
      examples: [false],
    }),
  ),
  expiresAt: Type.Optional(
    OrNull(
      Type.String({ format: 'date-time' }),
      'When the budget and everything below it stops working. Null: never.',
    ),
  ),
  metadata: Type.Optional(OrNull(Metadata, 'Fields of your own. Null: none.', { agent: 'a-17' })),
};

const Name = PrintableText(NAME_MAX, 'Research agent');

export const BudgetBody = Closed({
  name: Name,
  parentId: Type.Optional(
    OrNull(
      Id('budget', 'The budget.'),
      'The budget that this one is part of. Null, or left out: the account, or with a spend key its own budget. A tree ' +
        `is at most ${BUDGET_DEPTH_MAX} budgets deep.`,
    ),
  ),
  ...settings,
});
export type BudgetBody = Static<typeof BudgetBody>;

export const BudgetChanges = Closed({ name: Type.Optional(Name), ...settings });
export type BudgetChanges = Static<typeof BudgetChanges>;

export const BudgetReply = Closed({
  id: Id('budget', 'The id of the budget.'),
  parentId: OrNull(
    Id('budget', 'The budget above.'),
    'The budget above. Null: the account, or a budget that this key does not see.',
  ),
  name: Text('Its name.', 'Research agent'),
  status: Word(
    BUDGET_STATUSES,
    'Whether its keys can be used. A budget is closed or expired with each one above it.',
  ),
  limit: OrNull(Dollars('Dollars that can be spent in total.'), 'Dollars in total, or null.', 50),
  used: Dollars(
    'Dollars that its keys and those below it have spent, less refunds, plus what open holds reserve.',
    12.5,
  ),
  window: OrNull(
    Closed({
      per: Unit,
      limit: Dollars('Dollars that can be spent in each window.', 5),
      used: Dollars('The same in the current window.', 1.25),
      resetsAt: TimeOf('When the next window begins, in UTC.', '2026-11-22T00:00:00.000Z'),
    }),
    'The limit for each hour, day, week or month, or null.',
    { per: 'day', limit: 5, used: 1.25, resetsAt: '2026-11-22T00:00:00.000Z' },
  ),
  remaining: OrNull(
    Dollars('Dollars that are left.'),
    'The smallest amount that any limit of this budget or one above it has left. Null: no limit. The balance may be lower.',
    3.75,
  ),
  maxPerCall: OrNull(
    Dollars('Dollars of one call.'),
    'Dollars that one call may cost, or null.',
    0.5,
  ),
  allowLeases: Type.Boolean({ description: 'Whether its keys may be leased.', examples: [false] }),
  maxLease: OrNull(
    Dollars('Dollars of one lease.'),
    'Dollars that one lease may reserve, or null.',
    2,
  ),
  tools: OrNull(Type.Array(Type.String()), 'The only tools that may be charged, or null.'),
  developers: OrNull(
    Type.Array(Id('developer', 'A developer.')),
    'The only developers that may charge, or null.',
  ),
  approveDevelopers: Type.Boolean({
    description: 'Whether a developer is refused until the owner has approved it.',
    examples: [false],
  }),
  approvedDevelopers: Type.Array(Id('developer', 'A developer.'), {
    description: 'The developers that the owner has approved for this budget.',
  }),
  mayDelegate: Type.Boolean({
    description: 'Whether its keys may create budgets and keys below it.',
    examples: [false],
  }),
  limitsConsumerKeys: Type.Boolean({
    description:
      'Whether it limits what a single developer charges to the consumer keys of the account. Only the owner can close ' +
      'and reopen such a budget, in a session of the console.',
    examples: [false],
  }),
  expiresAt: OrNull(TimeOf('When it stops working.'), 'When it stops working, or null.'),
  metadata: OrNull(Metadata, 'Fields of your own, or null.', { agent: 'a-17' }),
  createdAt: TimeOf('When it was created, in UTC.'),
});
export type BudgetReply = Static<typeof BudgetReply>;

export const BudgetsQuery = Closed({
  ...pageParameters,
  parentId: Type.Optional(Id('budget', 'Only budgets directly below this one.')),
});
export type BudgetsQuery = Static<typeof BudgetsQuery>;

export const BudgetsReply = Closed({ budgets: Type.Array(BudgetReply), ...pageMarks });
export type BudgetsReply = Static<typeof BudgetsReply>;

export const BudgetUsageFileQuery = Closed(timeRange);
export type BudgetUsageFileQuery = Static<typeof BudgetUsageFileQuery>;

export const BudgetUsageQuery = Closed({
  ...pageParameters,
  ...timeRange,
  by: Type.Optional({
    ...Word(
      USAGE_GROUPS,
      'What is added up: all charges of a spend key, a tool, a developer or a UTC day.',
    ),
    default: 'tool',
  }),
});
export type BudgetUsageQuery = Static<typeof BudgetUsageQuery>;

const spent = {
  spent: Dollars(
    'Dollars charged, less refunds. A refund counts when it is made, so this may be negative.',
    1.25,
  ),
  charges: Count('How many charges were made.', 5),
};

export const BudgetUsageReply = Closed({
  budgetId: Id('budget', 'The id of the budget.'),
  total: Closed(spent, { description: 'The sums of the whole range, not only of this page.' }),
  usage: Type.Array(
    Closed({
      keyId: Type.Optional(Id('key', 'With `by=key`: the spend key.')),
      keyName: Type.Optional(OrNull(Type.String(), 'With `by=key`: its name, or null.')),
      tool: Type.Optional(Text('With `by=tool`: the name of the tool.', 'search')),
      developerId: Type.Optional(Id('developer', 'With `by=developer`: the developer.')),
      from: Type.Optional(
        TimeOf('With `by=day`: when the UTC day begins.', '2026-11-21T00:00:00.000Z'),
      ),
      ...spent,
    }),
    {
      description:
        'Keys and days newest first, tools by name, developers in the order in which they signed up. None without charges.',
    },
  ),
  ...pageMarks,
});
export type BudgetUsageReply = Static<typeof BudgetUsageReply>;

export const CloseBudgetBody = Closed({ releaseHolds });
export type CloseBudgetBody = Static<typeof CloseBudgetBody>;

export const SpendKeyBody = Closed({
  name: Type.Optional(PrintableText(NAME_MAX, 'Session 17')),
  expiresAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'When the key stops working. Default: with its budget.',
      examples: ['2026-12-01T00:00:00.000Z'],
    }),
  ),
});
export type SpendKeyBody = Static<typeof SpendKeyBody>;

export const SpendKeysReply = Closed({ keys: Type.Array(KeyReply), ...pageMarks });
export type SpendKeysReply = Static<typeof SpendKeysReply>;
