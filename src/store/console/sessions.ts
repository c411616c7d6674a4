/** How long the sessions of the console last. */
import { sql, type Connection } from '../database.ts';

/**
 * Prolongs a session that is used, by one of several requests and at most once a day: pages send many.
 * migrations/functions/end_session_in_time.sql shortens it to the thirty days after signing in.
 */
export async function prolongSession(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update console.sessions set expires_at = now() + interval '7 days', updated_at = now()
    where id = ${id} and expires_at > now()
      and expires_at < least(now() + interval '6 days', created_at + interval '30 days')
  `);
}
