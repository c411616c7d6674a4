/**
 * The developer's earnings (specification section 4.2), in total or for a range of whole UTC hours, of all
 * tools or one, optionally by hour or by UTC day.
 */
import { DAY_MS, HOUR_MS } from '../../../domain/durations.ts';
import { wireId } from '../../../domain/ids.ts';
import { asMicros, dollarsOf, type Dollars } from '../../../domain/money.ts';
import type { EarningsQuery, EarningsReply } from '../../../schemas/earnings.ts';
import type { TimeQuery } from '../../../schemas/shapes.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import {
  listEarnings,
  sumEarningsByTool,
  type EarningsFilter,
  type HourRange,
  type Interval,
} from '../../../store/earnings/earnings.ts';
import type { Reply, Request, ScanApi } from '../../endpoint.ts';
import { timeRangeOf } from '../../filters.ts';
import { invalidField } from '../../invalid-field.ts';

const INTERVAL_MS: Readonly<Record<Interval, number>> = { hour: HOUR_MS, day: DAY_MS };
/** Six weeks of hours, or almost three years of days. */
const POINTS_MAX = 1_000;

export async function getEarnings(
  api: ScanApi,
  { caller, query }: Request<undefined, EarningsQuery>,
): Promise<Reply<EarningsReply>> {
  const { interval, tool } = query;
  const range = { ...rangeOf(query, interval ?? 'hour'), tool };
  const series = interval && (await seriesOf(api, caller, range, interval));
  const now = api.clock.nowMs();
  const tools = await sumEarningsByTool(api.database, caller, range, now - (now % INTERVAL_MS.day));
  // No prototype, so that a tool named __proto__ is a member like any other.
  const byTool = Object.create(null) as Record<string, Dollars>;
  for (const { tool, earningsMicros } of tools) {
    if (earningsMicros !== null) byTool[tool] = dollarsOf(earningsMicros);
  }
  return {
    status: 200,
    body: {
      developerId: wireId('developer', caller.developerId),
      totalEarnings: sum(tools.map(({ earningsMicros }) => earningsMicros ?? 0)),
      todayEarnings: sum(tools.map(({ todayMicros }) => todayMicros)),
      byTool,
      ...(series && { series }),
    },
  };
}

/** `from` and `to`, on hour or day boundaries, because sums are stored by hour. */
export function rangeOf(query: TimeQuery, unit: Interval): HourRange {
  const { fromMs, toMs } = timeRangeOf(query);
  if (fromMs !== undefined) refuseInside(unit, 'from', fromMs);
  if (toMs !== undefined) refuseInside(unit, 'to', toMs);
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs) {
    throw invalidField('from', 'from must be before to.');
  }
  return { fromMs, toMs };
}

/** Refuses a time that is not the beginning of an hour or day. */
export function refuseInside(unit: Interval, name: string, timeMs: number): void {
  if (timeMs % INTERVAL_MS[unit] === 0) return;
  throw invalidField(name, `${name} must be the beginning of a UTC ${unit}.`);
}

/** Every interval from `from` to `to`, or up to the current one. */
async function seriesOf(api: ScanApi, caller: KeyOwner, range: EarningsFilter, interval: Interval) {
  const { fromMs, toMs = api.clock.nowMs(), tool } = range;
  if (fromMs === undefined) {
    throw invalidField('from', 'from is required with interval.');
  }
  const lengthMs = INTERVAL_MS[interval];
  const points = Math.ceil((toMs - fromMs) / lengthMs);
  if (points > POINTS_MAX) {
    throw invalidField('from', `A series has at most ${POINTS_MAX} ${interval}s.`);
  }
  const found = await listEarnings(api.database, caller, { fromMs, toMs, tool }, interval);
  const byTime = new Map(found.map((each) => [each.beginsMs, each]));
  return Array.from({ length: Math.max(points, 0) }, (_, index) => {
    const beginsMs = fromMs + index * lengthMs;
    const { earningsMicros, charges } = byTime.get(beginsMs) ?? NOTHING;
    const earnings = dollarsOf(earningsMicros);
    return { from: new Date(beginsMs).toISOString(), earnings, charges };
  });
}

const NOTHING = { earningsMicros: asMicros(0), charges: 0 };

function sum(amounts: readonly number[]): Dollars {
  return dollarsOf(asMicros(amounts.reduce((total, amount) => total + amount, 0)));
}
