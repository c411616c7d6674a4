/**
 * Mails that are owed to owners whose automatic top-ups have turned themselves off. The transaction that
 * turns them off notes that (auto-top-ups.ts). When the owner sets them again, or removes them, the row is
 * deleted, and nothing is owed any more.
 */
import { Type, type Static } from 'typebox';
import { durationOf, row, sql, type Connection } from '../database.ts';

const TurnedOff = Type.Object({
  ledger: Type.Integer(),
  consumerId: Type.String(),
  email: Type.String(),
  /** An `AutoTopUpFailureCode` or a `SuspectReason`. */
  reason: Type.String(),
  /** As text, which keeps the microseconds. */
  triedAt: Type.String(),
});
export type TurnedOff = Static<typeof TurnedOff>;

const turnedOffRow = row(TurnedOff);

/** Takes the one that was tried longest ago, if that is at least this long. No other process takes it for as long. */
export async function takeTurnedOff(
  connection: Connection,
  untriedForMs: number,
): Promise<TurnedOff | null> {
  return connection.maybeOne(sql.type(turnedOffRow)`
    update farebox.auto_top_ups a set mail_tried_at = now()
    from farebox.accounts o
    where (a.ledger, a.consumer_id) = (
      select ledger, consumer_id from farebox.auto_top_ups
      where mail_owed_at is not null
        and coalesce(mail_tried_at, '-infinity') <= now() - ${durationOf(untriedForMs)}
      order by mail_tried_at nulls first limit 1 for update skip locked
    ) and o.ledger = a.ledger and o.consumer_id = a.consumer_id
    returning a.ledger, a.consumer_id as "consumerId", o.email, a.reason, a.mail_tried_at::text as "triedAt"
  `);
}

/**
 * The mail server has it, or will never accept it. Does nothing if they were set again and turned themselves
 * off again meanwhile.
 */
export async function recordTurnedOffMailed(
  connection: Connection,
  { ledger, consumerId, triedAt }: TurnedOff,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.auto_top_ups set mail_owed_at = null
    where ledger = ${ledger} and consumer_id = ${consumerId} and mail_tried_at::text = ${triedAt}
  `);
}

/** Returns how many were owed for longer than this. */
export async function dropTurnedOff(connection: Connection, owedForMs: number): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    update farebox.auto_top_ups set mail_owed_at = null
    where mail_owed_at < now() - ${durationOf(owedForMs)}
  `);
  return rowCount;
}
