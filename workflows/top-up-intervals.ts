/**
 * The longest waits of a top-up: for a report before it asks the processor, and before it retries a failed step. Each
 * wait for a report is eight times as long as the one before, so an unpaid checkout costs five questions in its day.
 * Reconciliation finds a payment whose report was lost.
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
