/** Lets accounts take turns, across all processes, at reading many rows. */
import {
  inOneSnapshot,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { isLockTimeout } from '../failures.ts';

const WAIT_MS_MAX = 2_000;

/** The account's turn did not come in time. */
export class NoTurnError extends Error {
  override readonly name = 'NoTurnError';
}

/**
 * Reads in one snapshot while no other process reads for this account in its turn. The snapshot is of the time when the
 * wait began. Rejects with a NoTurnError.
 */
export function takeTurn<T>(
  database: Database,
  accountId: string,
  read: (connection: Connection) => Promise<T>,
): Promise<T> {
  return inOneSnapshot(database, (tx) => readInTurn(tx, accountId, read), preventArchiving);
}

/**
 * The same, but each statement has a snapshot of its own. One snapshot for many statements would keep PostgreSQL from
 * vacuuming the rows of busy consumers for as long as they take.
 */
export function takeTurnInSteps<T>(
  database: Database,
  accountId: string,
  read: (connection: Connection) => Promise<T>,
): Promise<T> {
  return database.transaction(async (tx) => {
    await preventArchiving(tx);
    return readInTurn(tx, accountId, read);
  });
}

/**
 * No month is archived from here to the end of the transaction. A snapshot from before that would have
 * neither the month's charges, which the catalog no longer has, nor their sums; and what is read in steps
 * could have both.
 */
async function preventArchiving(tx: Transaction): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`lock table only farebox.charges in access share mode`);
}

async function readInTurn<T>(
  tx: Transaction,
  accountId: string,
  read: (connection: Connection) => Promise<T>,
): Promise<T> {
  const turn = tx.query(sql.typeAlias('nothing')`
    select set_config('lock_timeout', ${`${WAIT_MS_MAX}ms`}, true),
      pg_advisory_xact_lock(hashtextextended('farebox.turns ' || ${accountId}, 0)),
      set_config('lock_timeout', usual, true)
    from (select current_setting('lock_timeout') as usual offset 0) as settings
  `);
  await turn.catch((error: unknown) => {
    throw isLockTimeout(error) ? new NoTurnError(undefined, { cause: error }) : error;
  });
  return read(tx);
}
