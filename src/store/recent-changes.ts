/** Which of the rows that API processes keep in memory changed recently. */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection } from './database.ts';

const Change = Type.Object({
  kind: Type.Enum(['key', 'tool', 'budget']),
  /** Of a tool its developer, of a budget its consumer. Empty for a key. */
  owner: Type.String(),
  /** Of a key its hash, of a tool its name, of a budget its number. */
  name: Type.String(),
});

export type Change = Static<typeof Change>;

const changeRow = row(Change);

const IS_RECENT = sql.fragment`changed_at > now() - interval '30 seconds'`;

/** In the last half minute, which is as long as a transaction that changes such a row may take. */
export async function findRecentChanges(connection: Connection): Promise<readonly Change[]> {
  return connection.any(sql.type(changeRow)`
    select 'key' as kind, '' as owner, encode(hash, 'hex') as name from farebox.api_keys where ${IS_RECENT}
    union all
    select 'key', '', encode(hash, 'hex') from farebox.spend_keys where ${IS_RECENT}
    union all
    select 'tool', developer_id::text, name from farebox.tools where ${IS_RECENT}
    union all
    select 'budget', consumer_id::text, number::text from farebox.budget_details where ${IS_RECENT}
  `);
}
