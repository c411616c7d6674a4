/** Who makes the changes of a transaction, as the audit log shows it (migrations/functions/audit_change.sql). */
import { sql, type Transaction } from '../database.ts';

/** A key, a session of the console, or the link of an approval's mail; ids are UUIDs, that of a link its approval's. */
export interface Actor {
  readonly kind: 'key' | 'session' | 'link';
  readonly id: string;
}

/** Until the end of the transaction. Undefined: only the program, such as a command or a charge. */
export async function actAs(tx: Transaction, by: Actor | undefined): Promise<void> {
  if (!by) return;
  const { kind, id } = by;
  await tx.query(sql.typeAlias('nothing')`
    select from set_config('farebox.changed_by', ${JSON.stringify({ kind, id })}, true)
  `);
}
