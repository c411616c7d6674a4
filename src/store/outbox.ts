/**
 * What workflows are to be told, written in the transaction that makes it true. A relay hands it over
 * afterwards, at least once, whoever dies on the way.
 */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection, type Transaction } from './database.ts';

/** Relays listen here; a trigger notifies, and the payload is empty. */
export const OUTBOX_CHANNEL = 'farebox_outbox';

/**
 * The row of this subject is new or has changed, so that its workflow must exist and look at it. The subject
 * of `auto_top_up` is a consumer, whose automatic top-up is due.
 */
const Notice = Type.Object({
  id: Type.Integer(),
  workflow: Type.Enum(['grant', 'invocation', 'auto_top_up', 'top_up']),
  subjectId: Type.String(),
  attempts: Type.Integer(),
});
export type Notice = Static<typeof Notice>;

const noticeRow = row(Notice);
const idRow = row(Type.Pick(Notice, ['id']));

/** Wakes the relays when the transaction is committed. */
export async function postNotice(
  connection: Connection,
  workflow: Notice['workflow'],
  subjectId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (workflow, subject_id) values (${workflow}, ${subjectId})
  `);
}

/** Takes what waits, the longest waiting first; for `leaseMs` no other relay does. */
export async function takeNotices(
  connection: Connection,
  limit: number,
  leaseMs: number,
): Promise<readonly Notice[]> {
  return connection.any(sql.type(noticeRow)`
    update farebox.outbox
    set attempts = attempts + 1, next_attempt_at = now() + ${leaseMs}::int8 * interval '1 ms'
    where id in (
      select id from farebox.outbox where next_attempt_at <= now()
      order by next_attempt_at limit ${limit} for update skip locked
    )
    returning id, workflow, subject_id as "subjectId", attempts
  `);
}

/** Nobody else hands it over until the transaction ends. False: somebody has. */
export async function lockNotice(tx: Transaction, id: number): Promise<boolean> {
  const locked = await tx.maybeOne(sql.type(idRow)`
    select id from farebox.outbox where id = ${id} for update
  `);
  return locked !== null;
}

export async function deleteNotice(connection: Connection, id: number): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`delete from farebox.outbox where id = ${id}`);
}

/** The writer has told the workflow himself. */
export async function deleteNoticesOf(
  connection: Connection,
  workflow: Notice['workflow'],
  subjectId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from farebox.outbox where workflow = ${workflow} and subject_id = ${subjectId}
  `);
}

export async function postponeNotice(
  connection: Connection,
  id: number,
  delayMs: number,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.outbox set next_attempt_at = now() + ${delayMs}::int8 * interval '1 ms'
    where id = ${id}
  `);
}
