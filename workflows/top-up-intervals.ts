/**
 * How long a top-up waits at most: for a report before it asks, and before it tries again what failed. It asks after
 * eight times as long each time: a checkout that nobody pays costs five questions in its day, and a payment whose
 * report was lost is found by reconciliation.
 */
export const ASK_MS_MAX = 86_400_000;
export const ASK_FACTOR = 8;
export const RETRY_MS_MAX = 600_000;

/** `24 hours`, `10 minutes`. */
export function inWords(ms: number): string {
  const minutes = ms / 60_000;
  return minutes % 60 === 0 ? plural(minutes / 60, 'hour') : plural(minutes, 'minute');
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
