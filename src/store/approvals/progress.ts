/** What the workflow of an approval has done, so that a lost one is found and started again. */
import { sql, type Connection } from '../database.ts';

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
      and a.created_at < now() - ${silentForMs}::int8 * interval '1 ms'
      and not exists (select from farebox.outbox o where o.subject_id = a.id)
  `);
  return rowCount;
}
