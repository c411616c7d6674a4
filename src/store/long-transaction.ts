/** Transactions of commands that read every charge, which take as long as that takes. */
import { Type } from 'typebox';
import { row, sql, type Fragment, type Transaction } from './database.ts';

/**
 * No limit for a statement of this transaction, as long as this process lives: when it ends, PostgreSQL gives
 * up the statement within a second. By itself it would notice only after the statement, so a command that
 * somebody stopped would keep its load, its locks and its snapshot, for hours where there are many charges.
 */
export async function allowLongStatements(tx: Transaction): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`set local statement_timeout = 0`);
  // In a savepoint, because PostgreSQL on Windows cannot.
  await tx
    .transaction((inner) =>
      inner.query(sql.typeAlias('nothing')`set local client_connection_check_interval = '1s'`),
    )
    .catch(() => {});
}

const settingRow = row(Type.Object({ setting: Type.String() }));

/** Waits for the locks of `work` as long as given, in milliseconds, 0 for no limit; for later ones as usual. */
export async function withLockTimeout(
  tx: Transaction,
  timeoutMs: number,
  work: () => Promise<unknown>,
): Promise<void> {
  const usual = await tx.oneFirst(sql.type(settingRow)`
    select current_setting('lock_timeout') as setting
  `);
  const setTimeoutTo = (setting: string) =>
    tx.query(sql.typeAlias('nothing')`select set_config('lock_timeout', ${setting}, true)`);
  await setTimeoutTo(`${timeoutMs}ms`);
  await work();
  await setTimeoutTo(usual);
}

/** Runs a statement that waits for a lock as long as another command takes. */
export async function waitLong(tx: Transaction, locking: Fragment): Promise<void> {
  await allowLongStatements(tx);
  await withLockTimeout(tx, 0, () => tx.query(sql.typeAlias('nothing')`${locking}`));
}
