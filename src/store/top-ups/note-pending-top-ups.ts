/** Tells the workflows of pending top-ups to ask the processor now. A workflow that is gone is started again. */
import { sql, type Connection, type Fragment } from '../database.ts';

export function noteReported(connection: Connection, topUpId: string): Promise<void> {
  return noteThose(connection, sql.fragment`t.id = ${topUpId}`);
}

/** For all of them, after a restore. */
export function notePendingTopUps(connection: Connection): Promise<void> {
  return noteThose(connection, sql.fragment`t.opened_at is not null`);
}

async function noteThose(connection: Connection, condition: Fragment): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (ledger, topic, subject_id)
    select t.ledger, 'payment_reported', t.id from farebox.top_ups t
    where t.status = 'pending' and ${condition} and not exists (
      select from farebox.outbox o where o.topic = 'payment_reported' and o.subject_id = t.id
    )
  `);
}
