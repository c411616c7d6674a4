/** How long a lease waits: between attempts, and for work that may take longer than its caller wants to wait. */
import { checkInteger, checkOptions } from './settings.js';

/** How long to wait for settlements. Less than the time that service managers grant a process to end. */
export const WAIT_MS = 8_000;
export const RETRY_MS = 500;
/** Farebox asks for less, but a proxy in front of it may ask for an hour. */
const RETRY_AFTER_MS_MAX = 60_000;

/** How long the caller of `settle()` or `close()` wants to wait. */
export function givenMs(options) {
  checkOptions("settle() or close()'s options", options, ['timeoutMs']);
  return checkInteger('timeoutMs', options?.timeoutMs ?? WAIT_MS, 0);
}

/** Until the attempt after a failed one: as long as the service says, at most `mostMs`. */
export function waitMs(error, mostMs = Infinity) {
  const { retryAfterMs = 0 } = error ?? {};
  return Math.max(RETRY_MS, Math.min(retryAfterMs, mostMs, RETRY_AFTER_MS_MAX));
}

/** Waits for the work, and no longer than this. */
export async function inTime(work, timeoutMs) {
  let timer;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}
