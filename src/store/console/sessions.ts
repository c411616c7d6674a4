/** How long the sessions of the console last. */
import { DAY_MS } from '../../domain/durations.ts';
import { sql, type Connection } from '../database.ts';

export interface SessionTimes {
  readonly id: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/**
 * Prolongs a session that is used, by one of several requests and at most once a day: pages send many.
 * migrations/functions/end_session_in_time.sql shortens it to the thirty days after signing in.
 */
export async function prolongSession(
  connection: Connection,
  { id, createdAt, expiresAt }: SessionTimes,
): Promise<void> {
  // A sign-in with `rememberMe: false` asks for a session of a day.
  if (expiresAt.getTime() - createdAt.getTime() <= DAY_MS) return;
  // The statement decides. This saves it where it would change nothing.
  const dueMs = Math.min(Date.now() + 6 * DAY_MS, createdAt.getTime() + 30 * DAY_MS);
  if (expiresAt.getTime() >= dueMs) return;
  await connection.query(sql.typeAlias('nothing')`
    update console.sessions set expires_at = now() + interval '7 days', updated_at = now()
    where id = ${id} and expires_at > now()
      and expires_at < least(now() + interval '6 days', created_at + interval '30 days')
  `);
}
