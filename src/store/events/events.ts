/**
 * Events: what happened to an account, for its webhook endpoints. Most are written by triggers
 * (migrations/functions/post_*_event.sql), in the transaction of the change.
 */
import type { EventType } from '../../domain/events.ts';
import { sql, type Connection } from '../database.ts';

/** Writes an event in the caller's transaction. `data` is sent as it is, in the form of src/schemas/events.ts. */
export async function postEvent(
  connection: Connection,
  accountId: string,
  type: EventType,
  data: object,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    select farebox.post_event(${accountId}, ${type}, ${JSON.stringify(data)}::json)
  `);
}
