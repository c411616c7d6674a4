/** Spans of time in milliseconds. A day is one of UTC, which has no daylight saving time. */
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
