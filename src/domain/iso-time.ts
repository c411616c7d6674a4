/** Parses times sent by clients. */

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Up to nanoseconds: Python writes six decimals, Go nine. */
const ISO = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3}(?<finer>\d{0,6}))?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * ISO 8601, a day or a time with its zone, in milliseconds; NaN for anything else. In UTC, too, its year has
 * four digits and is not 0, because Postgres reads no other. A finer time is rounded up: stored times are
 * whole milliseconds, so the same ones are before it.
 */
export function parseTime(text: string): number {
  const match = ISO.exec(text);
  const beginsMs = match && isDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN;
  const timeMs = /[1-9]/.test(match?.groups?.['finer'] ?? '') ? beginsMs + 1 : beginsMs;
  return timeMs >= FIRST_MS && timeMs <= LAST_MS ? timeMs : Number.NaN;
}

/** JavaScript parses February 31 as March 3. */
function isDay(text: string): boolean {
  const timeMs = Date.parse(text);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(text);
}
