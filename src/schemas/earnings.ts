/** Schemas of a developer's earnings (specification sections 2 and 4.2). */
import { Type, type Static } from 'typebox';
import { Closed, Count, Dollars, Id, Text, TimeOf, timeRange, Word } from './shapes.ts';

const interval = Word(['hour', 'day'], 'The length of an interval of the series.');

export const EarningsQuery = Closed({
  ...timeRange,
  tool: Type.Optional(Text('Only earnings of this tool.', 'search')),
  interval: Type.Optional({
    ...interval,
    description: 'Adds a series of UTC hours or days. Requires `from`.',
  }),
});
export type EarningsQuery = Static<typeof EarningsQuery>;

/** What an event of the stream of earnings says. */
export const LiveEarnings = Closed({
  developerId: Id('developer', 'Your developer id.'),
  totalEarnings: Dollars('Dollars earned in total.', 12.5),
  todayEarnings: Dollars('Dollars earned since 00:00 UTC.', 0.15),
  charges: Count('How many charges were made in total.'),
});
export type LiveEarnings = Static<typeof LiveEarnings>;

export const EarningsFileQuery = Closed({
  ...timeRange,
  interval: Type.Optional({
    ...interval,
    default: 'day',
    description: 'Whether a row is for a UTC hour or a UTC day.',
  }),
});
export type EarningsFileQuery = Static<typeof EarningsFileQuery>;

/** Specification section 2, Earnings summary. */
export const EarningsReply = Closed({
  developerId: Id('developer', 'Your developer id.'),
  totalEarnings: Dollars('Dollars earned from `from` to `to`, or in total by default.', 12.5),
  todayEarnings: Dollars('Dollars earned since 00:00 UTC.', 0.15),
  byTool: Type.Record(Type.String(), Dollars('Dollars.'), {
    description: 'Dollars earned by each tool from `from` to `to`, or in total by default.',
    examples: [{ search: 12.5 }],
  }),
  series: Type.Optional(
    Type.Array(
      Closed({
        from: TimeOf('The beginning of the interval.', '2026-11-21T00:00:00.000Z'),
        earnings: Dollars('Dollars earned in the interval.', 0.15),
        charges: Count('How many charges were made in the interval.'),
      }),
      { description: 'With `interval`: every hour or day since `from`, including empty ones.' },
    ),
  ),
});
export type EarningsReply = Static<typeof EarningsReply>;
