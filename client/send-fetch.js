/**
 * Sends one HTTP request with fetch. Under Node, Bun and Deno, send-node.js takes its place (package.json, `imports`).
 */

/**
 * Edge runtimes end a request together with the call that sent it, so other calls that wait for its answer never get
 * one.
 */
export const CAN_SHARE_REQUESTS = false;

/**
 * Resolves within `timeoutMs` with `{ status, header(name), text }`. Rejects with a `TimeoutError`, the signal's
 * reason, or an error that has a `code` or whose cause has one.
 */
export async function send(url, { timeoutMs, signal, ...options }) {
  const timeout = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, {
    ...options,
    // A redirect would take the consumer's key to another address.
    redirect: 'manual',
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
  });
  const text = await response.text();
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    text,
  };
}
