/**
 * Which of the rows that API processes keep in memory changed recently, and which transactions may still
 * change some.
 */
import { Type, type Static } from 'typebox';
import { durationOf, row, sql, type Connection } from './database.ts';
import { writers } from './writers.ts';

const Change = Type.Object({
  kind: Type.Enum(['key', 'tool', 'budget']),
  /** The developer of a tool, or the consumer of a budget. Empty for a key. */
  owner: Type.String(),
  /** The hash of a key, the name of a tool, or the number of a budget. */
  name: Type.String(),
});

export type Change = Static<typeof Change>;

export interface RecentChangesAnswer {
  readonly changes: readonly Change[];
  /** When Postgres read them, by its clock. */
  readonly at: string;
  /** What the transactions that had not ended wrote is not among the changes. */
  readonly writers: readonly Writer[];
}

const Writer = Type.Object({ id: Type.String(), since: Type.String() });

export type Writer = Static<typeof Writer>;

const answerRow = row(
  Type.Object({
    changes: Type.Array(Change),
    at: Type.String(),
    writers: Type.Array(Writer),
  }),
);

/** How far each answer looks back: a row has the time at which the transaction began that changed it. */
export const LOOK_BACK_MS = 30_000;

/**
 * What changed since half a minute before `since`, the time of the last answer by Postgres, or in the last
 * half minute if that is more. A transaction may take longer: the caller learns from `writers` that one has
 * ended.
 */
export async function findRecentChanges(
  connection: Connection,
  since: string | undefined,
): Promise<RecentChangesAnswer> {
  // The clock may have been set back since.
  const isRecent = sql.fragment`
    changed_at > least(now(), ${since ?? null}::timestamptz) - ${durationOf(LOOK_BACK_MS)}
  `;
  return connection.one(sql.type(answerRow)`
    select now() as at, coalesce(json_agg(c), '[]') as changes,
      (select coalesce(json_agg(w), '[]') from ${writers} w) as writers
    from (
      select 'key' as kind, '' as owner, encode(hash, 'hex') as name from farebox.api_keys where ${isRecent}
      union all
      select 'key', '', encode(hash, 'hex') from farebox.spend_keys where ${isRecent}
      union all
      select 'tool', developer_id::text, name from farebox.tools where ${isRecent}
      union all
      select 'budget', consumer_id::text, number::text from farebox.budget_details where ${isRecent}
    ) c
  `);
}
