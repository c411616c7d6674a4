/** A lock on something that has no row, such as the number of an account's agents. */
import { sql, type Transaction } from './database.ts';

/** Until the transaction ends, no other one holds the lock of this name. */
export async function lockName(tx: Transaction, name: string): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select pg_advisory_xact_lock(hashtextextended(${name}, 0))
  `);
}
