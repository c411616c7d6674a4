/** Transactions of commands that read every charge, which take as long as that takes. */
import { Type } from 'typebox';
import { row, sql, type Fragment, type Transaction } from './database.ts';

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

const settingRow = row(Type.Object({ setting: Type.String() }));

/** Runs a statement that waits for a lock as long as another command takes. Later ones wait as usual. */
export async function waitLong(tx: Transaction, locking: Fragment): Promise<void> {
  await takesLong(tx);
  const usual = await tx.oneFirst(sql.type(settingRow)`
    select current_setting('lock_timeout') as setting
  `);
  await tx.query(sql.typeAlias('nothing')`set local lock_timeout = 0`);
  await tx.query(sql.typeAlias('nothing')`${locking}`);
  await tx.query(sql.typeAlias('nothing')`select set_config('lock_timeout', ${usual}, true)`);
}
