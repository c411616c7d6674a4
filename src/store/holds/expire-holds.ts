/** Releases the money that expired holds still reserve. Any number of processes can run it at once. */
import { Type } from 'typebox';
import { repayDebts } from '../balance/debts.ts';
import { nullable, row, sql, type Database } from '../database.ts';

/**
 * The most rows of hold_expiries that one transaction takes. Each row lists the holds of one flush, and most
 * of them are closed by then. The function takes fewer rows when they list many holds
 * (migrations/functions/expire_holds.sql).
 */
const ROWS_MAX = 200;

const expiredRow = row(
  Type.Object({
    taken: Type.Integer(),
    closed: Type.Integer(),
    ledgers: nullable(Type.Array(Type.Integer())),
    consumers: nullable(Type.Array(Type.String())),
  }),
);

export interface Expired {
  readonly holds: number;
  /** Whether more may be due. */
  readonly hasMore: boolean;
}

/** One bounded step. The released money repays debts first, in the same transaction. */
export async function expireHolds(database: Database): Promise<Expired> {
  return database.transaction(async (tx) => {
    const { taken, closed, ledgers, consumers } = await tx.one(sql.type(expiredRow)`
      select taken, closed, ledgers, consumers from farebox.expire_holds(${ROWS_MAX}::int4)
    `);
    if (ledgers && consumers) {
      await repayDebts(
        tx,
        consumers.map((consumerId, n) => ({ ledger: ledgers[n] ?? 0, consumerId })),
      );
    }
    return { holds: closed, hasMore: taken === ROWS_MAX };
  });
}
