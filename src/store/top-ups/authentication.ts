/** Direct top-ups that wait until the cardholder has confirmed the payment at the bank. */
import { Type } from 'typebox';
import { durationOf, idRow, row, sql, type Connection, type Database } from '../database.ts';

const askedRow = row(
  Type.Object({
    automatic: Type.Boolean(),
    ledger: Type.Integer(),
    consumerId: Type.String(),
  }),
);

/** True for a pending automatic top-up until `recordOwnerMailed`: its owner does not know of it yet. */
export async function recordAuthenticationAsked(
  database: Database,
  topUpId: string,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const asked = await tx.maybeOne(sql.type(askedRow)`
      update farebox.top_ups set authentication_asked_at = now(), updated_at = now(), is_mail_due = automatic
      where id = ${topUpId} and method = 'direct' and status = 'pending'
        and authentication_asked_at is null
      returning automatic, ledger, consumer_id as "consumerId"
    `);
    if (asked?.automatic) {
      await tx.query(sql.typeAlias('nothing')`
        update farebox.auto_top_ups set status = 'waiting', reason = 'authentication_required'
        where ledger = ${asked.ledger} and consumer_id = ${asked.consumerId} and status <> 'off'
      `);
    }
    const due = await tx.maybeOne(sql.type(idRow)`
      select id from farebox.top_ups where id = ${topUpId} and status = 'pending' and is_mail_due
    `);
    return due !== null;
  });
}

/** The mail server has the mail to the owner, or will never accept it. */
export async function recordOwnerMailed(connection: Connection, topUpId: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set is_mail_due = false where id = ${topUpId}
  `);
}

/**
 * Writes notices for automatic top-ups whose owner has got no mail for this long, since their workflow may have been
 * terminated, or asks too seldom: one for each in this time. Returns how many.
 */
export async function noteUnmailedTopUps(
  connection: Connection,
  waitingForMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    with unmailed as materialized (
      select id from farebox.top_ups
      where automatic and status = 'pending' and is_mail_due
        and updated_at < now() - ${durationOf(waitingForMs)}
      for update skip locked
    ), noted as (
      update farebox.top_ups t set updated_at = now() from unmailed where t.id = unmailed.id
      returning t.ledger, t.id
    )
    insert into farebox.outbox (ledger, topic, subject_id) select ledger, 'payment_reported', id from noted
  `);
  return rowCount;
}
