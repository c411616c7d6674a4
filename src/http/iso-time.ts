/** Parses times sent by clients. */

/** ISO 8601, a day or a time with its zone, in milliseconds; NaN for anything else. */
export function parseTime(text: string): number {
  const isIso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  return isIso && isDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN;
}

/** JavaScript parses February 31 as March 3. */
function isDay(text: string): boolean {
  const timeMs = Date.parse(text);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(text);
}
