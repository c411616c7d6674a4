/** Translates the filters of a list for the store. */
import { uuidFloor, uuidOf } from '../domain/ids.ts';
import { parseTime } from '../domain/iso-time.ts';
import type { ChargesFileQuery, UsageFileQuery } from '../schemas/charges.ts';
import type { TimeQuery } from '../schemas/shapes.ts';
import type { ChargeFilter, DeveloperChargeFilter } from '../store/charges/list-charges.ts';
import { invalidField } from './invalid-field.ts';

export interface TimeRange {
  /** Inclusive. */
  readonly fromMs?: number | undefined;
  /** Exclusive. */
  readonly toMs?: number | undefined;
}

/** In milliseconds. Throws a 400 for a range that ends before it begins. */
export function timeRangeOf({ from, to }: TimeQuery): TimeRange {
  const fromMs = from === undefined ? undefined : parseTime(from);
  const toMs = to === undefined ? undefined : parseTime(to);
  if (fromMs !== undefined && toMs !== undefined && fromMs > toMs) {
    throw invalidField('from', 'from must not be after to.');
  }
  return { fromMs, toMs };
}

export function chargeFilterOf(query: UsageFileQuery): ChargeFilter {
  const { fromMs, toMs } = timeRangeOf(query);
  return {
    fromId: fromMs === undefined ? undefined : uuidFloor(fromMs),
    toId: toMs === undefined ? undefined : uuidFloor(toMs),
    tool: query.tool,
  };
}

export function developerChargeFilterOf(query: ChargesFileQuery): DeveloperChargeFilter {
  const { consumerId } = query;
  return {
    ...chargeFilterOf(query),
    consumerId: consumerId === undefined ? undefined : uuidOf('consumer', consumerId),
  };
}
