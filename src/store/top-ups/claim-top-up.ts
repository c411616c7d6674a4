/** The beginning of a top-up: its workflow claims the row, its request accepts it, or withdraws it before either. */
import { type Connection, idRow, sql } from '../database.ts';
import { topUpColumns, topUpRow, type TopUp } from './top-ups.ts';

/**
 * Claims the top-up for its workflow. From now on it has effects and its row stays, and the notice that starts it is
 * deleted. Null if the row was withdrawn: then nothing may be done.
 */
export async function claimTopUp(connection: Connection, id: string): Promise<TopUp | null> {
  return connection.maybeOne(sql.type(topUpRow)`
    with begun as (
      delete from farebox.outbox where topic = 'top_up' and subject_id = ${id}
    )
    update farebox.top_ups set opened_at = coalesce(opened_at, now())
    where id = ${id} returning ${topUpColumns}
  `);
}

/** Before a request answers 202 for a top-up that its workflow may not have claimed: nobody withdraws it afterwards. */
export async function acceptTopUp(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set accepted_at = now()
    where id = ${id} and opened_at is null and accepted_at is null
  `);
}

/** True: the top-up has had no effect and never will. False: it was accepted or claimed, or no longer exists. */
export async function withdrawTopUp(connection: Connection, id: string): Promise<boolean> {
  const withdrawn = await connection.maybeOne(sql.type(idRow)`
    with withdrawn as (
      delete from farebox.top_ups where id = ${id} and opened_at is null and accepted_at is null
      returning id
    ), called_off as (
      delete from farebox.outbox where topic = 'top_up' and subject_id in (select id from withdrawn)
    )
    select id from withdrawn
  `);
  return withdrawn !== null;
}
