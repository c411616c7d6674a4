/**
 * The transactions in this database that have begun to write and have not ended. What they wrote becomes
 * visible when they end, and no timeout limits that: a commit waits for a disk or a standby as long as it
 * takes. PostgreSQL shows only those of our own role, unless the role may read all statistics.
 */
import { Type } from 'typebox';
import { row, sql, type Connection } from './database.ts';

const beganRow = row(Type.Object({ beganMs: Type.Integer() }));

/**
 * A table of their numbers, and of when they began. Every process asks several times a second, and the view
 * pg_stat_activity of this function takes three times as long, to look up names.
 */
export const writers = sql.fragment`(
  select backend_xid::text as id, coalesce(xact_start, now()) as since from pg_stat_get_activity(null)
  where datid = (select oid from pg_database where datname = current_database()) and backend_xid is not null
)`;

/**
 * The time, in milliseconds, before which every transaction that wrote has ended: when the oldest one still
 * open began, or now.
 */
export function readOldestWrite(connection: Connection): Promise<number> {
  return connection.oneFirst(sql.type(beganRow)`
    select floor(extract(epoch from least(now(), (select min(since) from ${writers} w))) * 1000)::int8 as "beganMs"
  `);
}
