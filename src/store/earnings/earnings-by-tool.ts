/** A developer's earnings per tool and hour or day: the rows of exports and statements. */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { micros, row, sql, timestampOf, type Connection, type DeveloperRef } from '../database.ts';
import { within, type HourRange, type Interval } from './earnings.ts';

export interface ToolIntervalEarnings {
  readonly tool: string;
  readonly beginsMs: number;
  readonly earningsMicros: Micros;
  readonly charges: number;
}

export interface ToolIntervalPage {
  readonly limit: number;
  /** The last row of the page before. */
  readonly after?: Pick<ToolIntervalEarnings, 'tool' | 'beginsMs'> | undefined;
}

const intervalRow = row(
  Type.Object({
    tool: Type.String(),
    begins: Type.String(),
    earningsMicros: micros,
    charges: Type.Integer(),
  }),
);

/** By tool, then by time, in the order of the sums' key; sums and tail in one snapshot. */
export async function listToolEarnings(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  range: HourRange,
  interval: Interval,
  { limit, after }: ToolIntervalPage,
): Promise<ToolIntervalEarnings[]> {
  const chosen = sql.and([
    within(sql.fragment`begins_at`, range),
    after && sql.fragment`(tool, begins_at) > (${after.tool}, ${timestampOf(after.beginsMs)})`,
  ]);
  const rows = await connection.any(sql.type(intervalRow)`
    select tool, begins_at as begins, sum(amount_micros)::int8 as "earningsMicros",
      sum(charges)::int8 as charges
    from (
      (select tool, begins_at, amount_micros, charges from farebox.earnings
        where developer = ${developerNumber} and span = ${interval} and ${chosen}
        order by tool, begins_at limit ${limit})
      union all
      select tool, begins_at, amount_micros, charges from (
        select *, date_trunc(${interval}, minute, 'UTC') as begins_at from farebox.earnings_tail
        where developer = ${developerNumber}
      ) tail where ${chosen}
    ) e group by tool, begins_at order by tool, begins_at limit ${limit}
  `);
  return rows.map(({ tool, begins, earningsMicros, charges }) => ({
    tool,
    beginsMs: Date.parse(begins),
    earningsMicros,
    charges,
  }));
}
