/** The earnings of several developers in one statement: exact, and with ten million charges as fast as with ten. */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { micros, row, sql, timestampOf, type Connection } from '../database.ts';

export interface LiveTotals {
  readonly developerNumber: number;
  readonly total: Micros;
  /** On the UTC day that was asked for. */
  readonly today: Micros;
  /** A refund takes none away. */
  readonly charges: number;
}

const totalsRow = row(
  Type.Object({
    developerNumber: Type.Integer(),
    total: micros,
    today: micros,
    charges: Type.Integer(),
  }),
);

/** A developer without charges has no row. `todayMs` is the beginning of the UTC day. */
export async function sumLiveEarnings(
  connection: Connection,
  developerNumbers: readonly number[],
  todayMs: number,
): Promise<readonly LiveTotals[]> {
  const developers = sql.array(developerNumbers, 'int4');
  const today = timestampOf(todayMs);
  return connection.any(sql.type(totalsRow)`
    select developer as "developerNumber", sum(total)::int8 as total, sum(today)::int8 as today,
      sum(charges)::int8 as charges
    from (
      select developer, amount_micros as total, 0 as today, charges from farebox.earnings
      where developer = any (${developers}) and span = 'all'
      union all
      select developer, 0, amount_micros, 0 from farebox.earnings
      where developer = any (${developers}) and span = 'day' and begins_at = ${today}
      union all
      select developer, amount_micros, case when minute >= ${today} then amount_micros else 0 end, charges
      from farebox.earnings_tail where developer = any (${developers})
    ) e group by developer
  `);
}
