/**
 * A developer's earnings: the sums plus the tail, the charges that are not in the sums yet, read by one statement and
 * so in one snapshot. Exact at every moment, and as fast with ten million charges as with ten.
 */
import { Type } from 'typebox';
import { DAY_MS } from '../../domain/durations.ts';
import type { Micros } from '../../domain/money.ts';
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import {
  micros,
  nullable,
  row,
  sql,
  timestampOf,
  type Connection,
  type DeveloperRef,
  type Fragment,
} from '../database.ts';

/** Whole UTC hours, from `fromMs` inclusive to `toMs` exclusive. Without one of them the range is open on that side. */
export interface HourRange {
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

export interface EarningsFilter extends HourRange {
  readonly tool?: string | undefined;
}

export type Interval = 'hour' | 'day';

export interface ToolEarnings {
  readonly tool: string;
  /** Null when the range has none. */
  readonly earningsMicros: Micros | null;
  /** On the requested UTC day. */
  readonly todayMicros: Micros;
}

export interface IntervalEarnings {
  readonly beginsMs: number;
  readonly earningsMicros: Micros;
  readonly charges: number;
}

/**
 * Earnings since the archived months, computed from the charges and their refunds. The sums and the tail must add up to
 * the same.
 */
export const EARNED = sql.fragment`
  select developer, tool, date_bin('1 minute', uuid_extract_timestamp(id), 'epoch') as minute,
    amount_micros, 1 as charges
  from farebox.charges
  union all
  select developer, tool, date_bin('1 minute', uuid_extract_timestamp(id), 'epoch'), -amount_micros, 0
  from farebox.charge_refunds where uuid_extract_timestamp(id) >= ${ARCHIVED_BEFORE}
`;

/** Bit n stands for the nth minute of the hour. No bit is set without `charges`. */
export const MINUTE_MARK = sql.fragment`
  case when charges > 0 then 1::int8 << extract(minute from minute at time zone 'UTC')::int else 0 end
`;

/**
 * The hour and day in which the earnings of a `minute` with this many `charges` count. An hour marks its minutes that
 * have charges. The time zone is explicit, so the session's does not matter.
 */
export const SPANS = sql.fragment`
  (values ('hour', date_trunc('hour', minute, 'UTC'), ${MINUTE_MARK}),
    ('day', date_trunc('day', minute, 'UTC'), 0), ('all', '-infinity'::timestamptz, 0))
    as s (span, begins_at, charged_minutes)
`;

/** The developer's earnings as a few rows of `tool, amount_micros, charges`, for the caller to add up. */
export function earnedIn({ developerNumber }: DeveloperRef, range: EarningsFilter) {
  const wanted = ofTool(range);
  const sums = piecesOf(range).map(
    ({ span, fromMs, toMs }) => sql.fragment`
      select tool, amount_micros, charges from farebox.earnings
      where developer = ${developerNumber} and span = ${span} and ${wanted}
        and ${within(sql.fragment`begins_at`, { fromMs, toMs })}`,
  );
  const tail = sql.fragment`
      select tool, amount_micros, charges from farebox.earnings_tail
      where developer = ${developerNumber} and ${wanted} and ${within(sql.fragment`minute`, range)}`;
  return sql.join([...sums, tail], sql.fragment` union all `);
}

function ofTool({ tool }: EarningsFilter) {
  return tool === undefined ? sql.fragment`true` : sql.fragment`tool = ${tool}`;
}

interface Piece extends HourRange {
  readonly span: 'hour' | 'day' | 'all';
}

/** Whole days as days, the edges of the range as hours. */
function piecesOf({ fromMs, toMs }: HourRange): Piece[] {
  if (fromMs === undefined && toMs === undefined) return [{ span: 'all' }];
  const firstDayMs = fromMs === undefined ? undefined : Math.ceil(fromMs / DAY_MS) * DAY_MS;
  const lastDayMs = toMs === undefined ? undefined : Math.floor(toMs / DAY_MS) * DAY_MS;
  if (firstDayMs !== undefined && lastDayMs !== undefined && firstDayMs >= lastDayMs) {
    return [{ span: 'hour', fromMs, toMs }];
  }
  return [
    ...(firstDayMs === fromMs ? [] : [{ span: 'hour' as const, fromMs, toMs: firstDayMs }]),
    { span: 'day', fromMs: firstDayMs, toMs: lastDayMs },
    ...(lastDayMs === toMs ? [] : [{ span: 'hour' as const, fromMs: lastDayMs, toMs }]),
  ];
}

/** The condition that an hour or day is in the range. */
export function within(column: Fragment, { fromMs, toMs }: HourRange) {
  return sql.and([
    fromMs !== undefined && sql.fragment`${column} >= ${timestampOf(fromMs)}`,
    toMs !== undefined && sql.fragment`${column} < ${timestampOf(toMs)}`,
  ]);
}

const toolRow = row(
  Type.Object({
    tool: Type.String(),
    earningsMicros: nullable(micros),
    todayMicros: micros,
  }),
);

/** Earnings by tool, in the order of their names. `todayMs` is the start of the UTC day for `today`. */
export async function sumEarningsByTool(
  connection: Connection,
  developer: DeveloperRef,
  range: EarningsFilter,
  todayMs: number,
): Promise<readonly ToolEarnings[]> {
  const today = { fromMs: todayMs, toMs: todayMs + DAY_MS, tool: range.tool };
  return connection.any(sql.type(toolRow)`
    select tool, sum(earnings)::int8 as "earningsMicros", sum(today)::int8 as "todayMicros"
    from (
      select tool, amount_micros as earnings, 0 as today from (${earnedIn(developer, range)}) a
      union all
      select tool, null, amount_micros from (${earnedIn(developer, today)}) t
    ) e group by tool order by tool
  `);
}

const intervalRow = row(
  Type.Object({ begins: Type.String(), earningsMicros: micros, charges: Type.Integer() }),
);

/** The hours or days with earnings, earliest first. */
export async function listEarnings(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  range: EarningsFilter,
  interval: Interval,
): Promise<IntervalEarnings[]> {
  const rows = await connection.any(sql.type(intervalRow)`
    select begins_at as begins, sum(amount_micros)::int8 as "earningsMicros", sum(charges)::int8 as charges
    from (
      select begins_at, amount_micros, charges from farebox.earnings
      where developer = ${developerNumber} and span = ${interval} and ${ofTool(range)}
        and ${within(sql.fragment`begins_at`, range)}
      union all
      select date_trunc(${interval}, minute, 'UTC'), amount_micros, charges from farebox.earnings_tail
      where developer = ${developerNumber} and ${ofTool(range)} and ${within(sql.fragment`minute`, range)}
    ) e group by 1 order by 1
  `);
  return rows.map(({ begins, earningsMicros, charges }) => ({
    beginsMs: Date.parse(begins),
    earningsMicros,
    charges,
  }));
}
