/** Transactions of commands that read every charge, which take as long as that takes. */
import { Type } from 'typebox';
import { row, sql, type Fragment, type Transaction } from './database.ts';

/**
 * When this process ends, PostgreSQL gives up the statement of this transaction within a second. By itself it would
 * notice only after the statement. Run this in a savepoint: PostgreSQL on Windows refuses it.
 */
export const NOTICE_OUR_END = sql.fragment`set local client_connection_check_interval = '1s'`;

/**
 * No limit for a statement of this transaction, as long as this process lives. A command that somebody stopped would
 * otherwise keep its load, its locks and its snapshot, for hours where there are many charges.
 */
export async function allowLongStatements(tx: Transaction): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`set local statement_timeout = 0`);
  await tx
    .transaction((inner) => inner.query(sql.typeAlias('nothing')`${NOTICE_OUR_END}`))
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
