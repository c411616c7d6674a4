/** Attempts until there is an answer that another attempt would not change, or no time for one. */
import { aborted } from './transport.js';

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 2_000;

/**
 * Calls `attempt(leftMs)`, which gives an answer of transport.js, again and again. Resolves with the last
 * answer and with what all attempts together leave open, within `timeoutMs * (maxRetries + 1)`, or when the
 * signal says so.
 */
export async function retry(attempt, { timeoutMs, maxRetries, signal }) {
  const deadline = performance.now() + timeoutMs * (maxRetries + 1);
  let isUnknown = false;
  for (let retries = 0; ; retries += 1) {
    if (signal?.aborted) return { answer: aborted(signal, false), isUnknown };
    const answer = await attempt(Math.max(1, Math.ceil(deadline - performance.now())));
    // What a lost answer left open stays open, until one comes that looked the key up.
    if (answer.unknown) isUnknown = true;
    else if (answer.looksUp) isUnknown = false;
    if (!answer.retryable || retries === maxRetries) return { answer, isUnknown };
    const waitMs = Math.max(backoffMs(retries), answer.retryAfterMs ?? 0);
    if (performance.now() + waitMs >= deadline) return { answer, isUnknown };
    await pause(waitMs, signal);
  }
}

/** Shorter when the signal says so. */
function pause(waitMs, signal) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, waitMs);
    signal?.addEventListener('abort', wake);
  });
}

/** Doubles from 100 ms to 2 s; half of it random, so that callers refused together come back apart. */
function backoffMs(retries) {
  const ceiling = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** retries);
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
