/**
 * One HTTP request, answered within `timeoutMs` or not at all: `{ status, header(name), text }`. Rejects
 * with a `TimeoutError`, or with an error that has a `code` or whose cause has one. For any runtime with
 * fetch; under Node send-node.js takes its place (package.json, `imports`).
 */
export async function send(url, { timeoutMs, ...options }) {
  const response = await fetch(url, {
    ...options,
    // A redirect would take the consumer's key to another address.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    text,
  };
}
