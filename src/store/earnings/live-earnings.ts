/** The earnings of several developers in one statement: exact, and with ten million charges as fast as with ten. */
import { Type, type Static } from 'typebox';
import { asMicros, type Micros } from '../../domain/money.ts';
import { row, sql, timestampOf, type Connection } from '../database.ts';

export interface LiveTotals {
  readonly totalMicros: Micros;
  /** On the UTC day that was asked for. */
  readonly todayMicros: Micros;
  /** A refund takes none away. */
  readonly charges: number;
}

/** Sums as text: one that is too large for a number must not fail the sums of other developers. */
const Sums = Type.Object({
  developerNumber: Type.Integer(),
  total: Type.String(),
  today: Type.String(),
  charges: Type.Integer(),
});

const sumsRow = row(Sums);

/**
 * By developer number. A developer without charges has none. Null: more than the largest safe integer. `todayMs` is the
 * beginning of the UTC day.
 */
export async function sumLiveEarnings(
  connection: Connection,
  developerNumbers: readonly number[],
  todayMs: number,
): Promise<ReadonlyMap<number, LiveTotals | null>> {
  const developers = sql.array(developerNumbers, 'int4');
  const today = timestampOf(todayMs);
  const rows = await connection.any(sql.type(sumsRow)`
    select developer as "developerNumber", sum(total)::text as total, sum(today)::text as today,
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
  return new Map(rows.map((sums) => [sums.developerNumber, totalsOf(sums)]));
}

function totalsOf({ total, today, charges }: Static<typeof Sums>): LiveTotals | null {
  const [totalMicros, todayMicros] = [Number(total), Number(today)];
  if (!Number.isSafeInteger(totalMicros) || !Number.isSafeInteger(todayMicros)) return null;
  return { totalMicros: asMicros(totalMicros), todayMicros: asMicros(todayMicros), charges };
}
