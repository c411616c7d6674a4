/** Transactions of commands that read every charge, which take as long as that takes. */
import { sql, type Transaction } from './database.ts';

/**
 * No limit for a statement of this transaction, as long as this process lives: when it ends, PostgreSQL gives
 * up the statement within a second. By itself it would notice only after the statement, so a command that
 * somebody stopped would keep its load, its locks and its snapshot, for hours where there are many charges.
 */
export async function takesLong(tx: Transaction): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`set local statement_timeout = 0`);
  // In a savepoint, because PostgreSQL on Windows cannot.
  await tx
    .transaction((inner) =>
      inner.query(sql.typeAlias('nothing')`set local client_connection_check_interval = '1s'`),
    )
    .catch(() => {});
}
