/** Retries until the answer is final or the time is up. */
import { aborted } from './transport.js';

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 2_000;

/**
 * Calls `attempt({ timeoutMs, leftMs, deadline })`, which gives an answer of transport.js, repeatedly. It may take
 * `timeoutMs`, and all attempts together `leftMs`, until `deadline` of `performance.now()`. A pause between
 * attempts of more than `pauseMsMax` ends the call instead. Resolves with the last
 * answer and with whether the outcome is unknown after all attempts, within `timeoutMs * (maxRetries + 1)`,
 * or `totalMs` if that is less, or when the signal aborts.
 */
export async function retry(
  attempt,
  { timeoutMs, maxRetries, signal, totalMs = Infinity, pauseMsMax = Infinity },
) {
  let now = performance.now();
  const deadline = now + Math.min(timeoutMs * (maxRetries + 1), totalMs);
  let isUnknown = false;
  for (let retries = 0; ; retries += 1) {
    if (signal?.aborted) return { answer: aborted(signal, false), isUnknown };
    const leftMs = Math.max(1, Math.ceil(deadline - now));
    const answer = await attempt({ timeoutMs: Math.min(timeoutMs, leftMs), leftMs, deadline });
    // After a lost answer, the outcome stays unknown until an answer comes for which the service looked up the key.
    if (answer.unknown) isUnknown = true;
    else if (answer.looksUp) isUnknown = false;
    if (!answer.retryable || retries === maxRetries) return { answer, isUnknown };
    const pauseMs = Math.max(backoffMs(retries), answer.retryAfterMs ?? 0);
    const isTooLong = pauseMs > pauseMsMax || performance.now() + pauseMs >= deadline;
    if (isTooLong) return { answer, isUnknown };
    await pause(pauseMs, signal);
    now = performance.now();
  }
}

/** Ends early when the signal aborts. */
export function pause(waitMs, signal) {
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

/**
 * Doubles from 100 ms to 2 s. Half of it is random, so that callers refused at the same time return at different times.
 */
function backoffMs(retries) {
  const ceiling = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** retries);
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
