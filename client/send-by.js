/** One HTTP request by a function that is called as fetch is: fetch itself, or the one of the client's settings. */
export async function sendBy(call, url, { timeoutMs, signal, ...options }) {
  const timeout = AbortSignal.timeout(timeoutMs);
  const response = await call(url, {
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
