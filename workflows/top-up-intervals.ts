/** How long a top-up waits at most: for a report before it asks, and before it tries again what failed. */
export const ASK_MS_MAX = 3_600_000;
export const RETRY_MS_MAX = 600_000;

/** `1 hour`, `10 minutes`. */
export function inWords(ms: number): string {
  const minutes = ms / 60_000;
  return minutes % 60 === 0 ? plural(minutes / 60, 'hour') : plural(minutes, 'minute');
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
