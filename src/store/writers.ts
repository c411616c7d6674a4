/**
 * The transactions in this database that have begun to write and have not ended. What they wrote becomes visible when they
 * end, and no timeout limits that: a commit waits for a disk or a standby as long as it takes. PostgreSQL shows only those of
 * our own role, unless the role may read all statistics.
 */
import { sql } from './database.ts';

/** A table of their numbers, and of when they began. */
export const writers = sql.fragment`(
  select backend_xid::text as id, coalesce(xact_start, now()) as since from pg_stat_activity
  where datname = current_database() and backend_xid is not null
)`;
