/** Which of the rows that API processes keep in memory changed recently. */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection } from './database.ts';

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
}

const answerRow = row(Type.Object({ changes: Type.Array(Change), at: Type.String() }));

/**
 * What changed since half a minute before `since`, the time of the last answer by Postgres, or in the last half minute if that is
 * more. A transaction that changes such a row may take half a minute, and gives the row the time of its beginning.
 */
export async function findRecentChanges(
  connection: Connection,
  since: string | undefined,
): Promise<RecentChangesAnswer> {
  // The clock may have been set back since.
  const isRecent = sql.fragment`
    changed_at > least(now(), ${since ?? null}::timestamptz) - interval '30 seconds'
  `;
  return connection.one(sql.type(answerRow)`
    select now() as at, coalesce(json_agg(c), '[]') as changes from (
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
