/** What the workflow of an approval has done, so that a lost one is found and started again. */
import { durationOf, sql, type Connection } from '../database.ts';

export async function noteBegun(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.approvals set begun_at = now() where id = ${id} and begun_at is null
  `);
}

export async function noteMailed(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.approvals set mailed_at = now() where id = ${id} and mailed_at is null
  `);
}

/** Posts a notice for pending approvals that no workflow has read for this long. Returns their number. */
export async function noteUnbegunApprovals(
  connection: Connection,
  silentForMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (ledger, topic, subject_id)
    select a.ledger, 'approval', a.id from farebox.approvals a
    where a.status = 'pending' and a.begun_at is null
      and a.created_at < now() - ${durationOf(silentForMs)}
      and not exists (select from farebox.outbox o where o.subject_id = a.id)
  `);
  return rowCount;
}

/**
 * Posts a notice for pending approvals whose owner was not mailed: their workflow may have been terminated
 * after it began. A running one tries by itself, and is not disturbed. Each is noted again after the same
 * time. Returns their number.
 */
export async function noteUnmailedApprovals(
  connection: Connection,
  waitingForMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    with unmailed as materialized (
      select a.id from farebox.approvals a
      where a.status = 'pending' and a.mailed_at is null
        and a.begun_at < now() - ${durationOf(waitingForMs)}
      for update skip locked
    ), noted as (
      update farebox.approvals a set begun_at = now() from unmailed where a.id = unmailed.id
      returning a.ledger, a.id
    )
    insert into farebox.outbox (ledger, topic, subject_id) select ledger, 'approval', id from noted
  `);
  return rowCount;
}
