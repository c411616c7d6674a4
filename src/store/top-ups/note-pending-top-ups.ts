/** After a restore: has every top-up that is under way looked at by its workflow, which may be gone or further on. */
import { sql, type Connection } from '../database.ts';

export async function notePendingTopUps(connection: Connection): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (topic, subject_id)
    select 'payment_reported', t.id from farebox.top_ups t
    where t.status = 'pending' and t.opened_at is not null and not exists (
      select from farebox.outbox o where o.topic = 'payment_reported' and o.subject_id = t.id
    )
  `);
}
