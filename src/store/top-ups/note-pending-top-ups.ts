/** After a restore, tells the workflow of every pending top-up to ask Stripe, and starts it again if it is gone. */
import { sql, type Connection } from '../database.ts';

export async function notePendingTopUps(connection: Connection): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (ledger, topic, subject_id)
    select t.ledger, 'payment_reported', t.id from farebox.top_ups t
    where t.status = 'pending' and t.opened_at is not null and not exists (
      select from farebox.outbox o where o.topic = 'payment_reported' and o.subject_id = t.id
    )
  `);
}
