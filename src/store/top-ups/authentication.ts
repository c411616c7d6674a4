/** Direct top-ups that wait until the cardholder has confirmed the payment at the bank. */
import { Type } from 'typebox';
import { row, sql, type Connection, type Database } from '../database.ts';

const askedRow = row(
  Type.Object({
    automatic: Type.Boolean(),
    ledger: Type.Integer(),
    consumerId: Type.String(),
  }),
);

/** True for the first call about a pending automatic top-up: its owner does not know of it yet. */
export async function recordAuthenticationAsked(
  database: Database,
  topUpId: string,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const asked = await tx.maybeOne(sql.type(askedRow)`
      update farebox.top_ups set authentication_asked_at = now(), updated_at = now()
      where id = ${topUpId} and method = 'direct' and status = 'pending'
        and authentication_asked_at is null
      returning automatic, ledger, consumer_id as "consumerId"
    `);
    if (!asked?.automatic) return false;
    await tx.query(sql.typeAlias('nothing')`
      update farebox.auto_top_ups set status = 'waiting', reason = 'authentication_required'
      where ledger = ${asked.ledger} and consumer_id = ${asked.consumerId} and status <> 'off'
    `);
    return true;
  });
}

/** Tells the workflow of a pending top-up to ask the processor now. */
export async function noteReported(connection: Connection, topUpId: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (ledger, topic, subject_id)
    select t.ledger, 'payment_reported', t.id from farebox.top_ups t
    where t.id = ${topUpId} and t.status = 'pending' and not exists (
      select from farebox.outbox o where o.topic = 'payment_reported' and o.subject_id = t.id
    )
  `);
}
