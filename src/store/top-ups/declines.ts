/** How often a saved card may be declined before it must rest. */
import { Type } from 'typebox';
import { type Connection, row, sql } from '../database.ts';
import { idFloorOf } from '../database-ids.ts';

const waitRow = row(Type.Object({ waitMs: Type.Integer() }));

/** The most declines in an hour: card networks charge for more, and block merchants that continue. */
const DECLINES_PER_HOUR_MAX = 5;

/**
 * Milliseconds until the saved card may be tried: an hour after the first of the last declines. A credit makes it 0.
 */
export async function findDeclinedWait(
  connection: Connection,
  consumerId: string,
): Promise<number> {
  // No payment takes longer to settle, so what ended in the last hour is not older.
  const oldest = sql.fragment`now() - interval '40 days'`;
  const wait = await connection.maybeOneFirst(sql.type(waitRow)`
    select ceil(extract(epoch from seen_at + interval '1 hour' - now()) * 1000)::int8 as "waitMs"
    from farebox.top_ups
    where consumer_id = ${consumerId} and method = 'direct' and created_at > ${oldest} and seen_verdict = 'failed'
      and seen_failure_code in ('card_declined', 'card_expired') and payment_intent_id is not null
      and seen_at > now() - interval '1 hour'
      and seen_at > coalesce(
        (select max(completed_at) from farebox.top_ups
          where consumer_id = ${consumerId} and id > ${idFloorOf(oldest)}), '-infinity')
    order by seen_at desc offset ${DECLINES_PER_HOUR_MAX - 1} limit 1
  `);
  return wait ?? 0;
}
