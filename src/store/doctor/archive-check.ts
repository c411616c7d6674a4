/**
 * Whether the archive_command of PostgreSQL fails, if it has one: then PostgreSQL keeps all WAL until its disk is full,
 * and that disk is the only place of what is not archived. A command that hangs is not found.
 */
import { Type } from 'typebox';
import { durationOf, row, sql, type Database } from '../database.ts';
import type { Offender } from './findings.ts';

export const ARCHIVED_CHECK = 'PostgreSQL archives its WAL, if it is set to';

/**
 * PostgreSQL tries again at least once a minute. Without an archive_timeout, a quiet server may archive less often than
 * this. Its first failure is then reported immediately.
 */
const ARCHIVED_WITHIN_MS = 600_000;

const failureRow = row(Type.Object({ subject: Type.String(), detail: Type.String() }));

/** Empty if the last attempt succeeded, or if one did within this time. */
export async function listArchiveFailures(
  database: Database,
  withinMs: number = ARCHIVED_WITHIN_MS,
): Promise<readonly Offender[]> {
  return database.any(sql.type(failureRow)`
    select 'WAL file ' || last_failed_wal as subject, 'its archive_command fails, last at ' || last_failed_time
      || '; the last file was archived at ' || coalesce(last_archived_time::text, 'no time') as detail
    from pg_stat_archiver
    where current_setting('archive_mode') <> 'off'
      and last_failed_time > coalesce(last_archived_time, '-infinity')
      and coalesce(last_archived_time, stats_reset) <= now() - ${durationOf(withinMs)}
  `);
}
