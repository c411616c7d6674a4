/** Attempts until there is an answer that another attempt would not change, or no time for one. */

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 2_000;

/**
 * Calls `attempt(leftMs)`, which gives an answer of transport.js, again and again. Resolves with the last
 * answer and the outcome of all attempts together, within `timeoutMs * (maxRetries + 1)`.
 */
export async function retry(attempt, { timeoutMs, maxRetries }) {
  const deadline = performance.now() + timeoutMs * (maxRetries + 1);
  let outcome = 'not_charged';
  for (let retries = 0; ; retries += 1) {
    const answer = await attempt(Math.max(1, Math.ceil(deadline - performance.now())));
    // A charge whose answer was lost stays unknown, until an answer that looked the key up: 402 and
    // 422 do, but a revoked key or a full queue is refused before.
    if (answer.unknown) outcome = 'unknown';
    else if (answer.status === 402 || answer.status === 422) outcome = 'not_charged';
    if (!answer.retryable || retries === maxRetries) return { answer, outcome };
    const waitMs = Math.max(backoffMs(retries), answer.retryAfterMs ?? 0);
    if (performance.now() + waitMs >= deadline) return { answer, outcome };
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** Doubles from 100 ms to 2 s; half of it random, so that callers refused together come back apart. */
function backoffMs(retries) {
  const ceiling = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** retries);
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
