/** What a query string may say in lists: page, time, tool. All of it is checked, none of it clamped. */
import type { ParsedUrlQuery } from 'node:querystring';
import { ApiError } from '../domain/errors.ts';
import { TIME_MS_MAX, uuidFloor, uuidOf, wireId, type IdKind } from '../domain/ids.ts';
import type { ChargeFilter, DeveloperChargeFilter, Page } from '../store/charges/list-charges.ts';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;

/** `limit` (1-100, default 50) and `cursor`, which is the id of the last item of the page before. */
export function pageOf(query: ParsedUrlQuery, kind: IdKind): Page {
  const limitText = single(query, 'limit');
  const limit = limitText === undefined ? LIMIT_DEFAULT : Number(limitText);
  if (limitText !== undefined && (!/^\d{1,3}$/.test(limitText) || limit < 1 || limit > LIMIT_MAX)) {
    throw new ApiError('invalid_request', `limit must be an integer from 1 to ${LIMIT_MAX}.`, {
      param: 'limit',
    });
  }
  const cursor = single(query, 'cursor');
  if (cursor === undefined) return { limit };
  const beforeId = uuidOf(kind, cursor);
  if (beforeId === undefined) {
    throw new ApiError('invalid_cursor', 'cursor must be a nextCursor of this list.', {
      param: 'cursor',
    });
  }
  return { limit, beforeId };
}

/** `from` (inclusive), `to` (exclusive) and `tool`. */
export function chargeFilterOf(query: ParsedUrlQuery): ChargeFilter {
  return {
    fromId: floorOf(query, 'from'),
    toId: floorOf(query, 'to'),
    tool: single(query, 'tool'),
  };
}

/** The same and `consumerId`. */
export function developerChargeFilterOf(query: ParsedUrlQuery): DeveloperChargeFilter {
  const text = single(query, 'consumerId');
  const consumerId = text === undefined ? undefined : uuidOf('consumer', text);
  if (text !== undefined && consumerId === undefined) {
    throw new ApiError('invalid_request', 'consumerId must be an id of a consumer: cns_....', {
      param: 'consumerId',
    });
  }
  return { ...chargeFilterOf(query), consumerId };
}

/** `true` or `false`; left out, it is false. */
export function flagOf(query: ParsedUrlQuery, name: string): boolean {
  const text = single(query, name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new ApiError('invalid_request', `${name} must be true or false.`, { param: name });
}

export function textOf(query: ParsedUrlQuery, name: string): string | undefined {
  return single(query, name);
}

function floorOf(query: ParsedUrlQuery, name: string): string | undefined {
  const timeMs = timeOf(query, name);
  return timeMs === undefined ? undefined : uuidFloor(timeMs);
}

/** In milliseconds. */
export function timeOf(query: ParsedUrlQuery, name: string): number | undefined {
  const text = single(query, name);
  if (text === undefined) return undefined;
  const timeMs = parseTime(text);
  if (timeMs >= 0 && timeMs <= TIME_MS_MAX) return timeMs;
  throw new ApiError(
    'invalid_request',
    `${name} must be a date or time in ISO 8601, such as 2026-01-31 or 2026-01-31T09:30:00Z.`,
    { param: name },
  );
}

/** One of these words, or undefined when it is left out. */
export function oneOf<T extends string>(
  query: ParsedUrlQuery,
  name: string,
  words: readonly T[],
): T | undefined {
  const text = single(query, name);
  const word = words.find((candidate) => candidate === text);
  if (text === undefined || word !== undefined) return word;
  throw new ApiError('invalid_request', `${name} must be one of: ${words.join(', ')}.`, {
    param: name,
  });
}

/** ISO 8601, a day or a time with its zone, in milliseconds; NaN for anything else. */
export function parseTime(text: string): number {
  const isIso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  return isIso && isDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN;
}

/** The engine reads the 31st of February as the 3rd of March. */
function isDay(text: string): boolean {
  const timeMs = Date.parse(text);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(text);
}

function single(query: ParsedUrlQuery, name: string): string | undefined {
  const value = query[name];
  if (Array.isArray(value) || value?.includes('\0')) {
    throw new ApiError('invalid_request', `${name} may be given once, as text.`, { param: name });
  }
  return value;
}

/** Cuts the row that was read past the page's end, which only tells that there is a next page. */
export function paged<T extends { readonly id: string }>(
  rows: readonly T[],
  limit: number,
  kind: IdKind,
): { rows: readonly T[]; hasMore: boolean; nextCursor: string | null } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rows.length > limit;
  return { rows: page, hasMore, nextCursor: hasMore && last ? wireId(kind, last.id) : null };
}
