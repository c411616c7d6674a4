/** What ends a request that has no answer in time. */
export function noAnswer() {
  return new DOMException('No answer in time.', 'TimeoutError');
}

/** One HTTP request by a function that is called as fetch is: fetch itself, or the one of the client's settings. */
export async function sendBy(call, url, { timeoutMs, signal, ...options }) {
  // Not AbortSignal.any(), with which Node 22 keeps some memory of each call for as long as the caller's signal lives.
  const ending = new AbortController();
  const abort = () => ending.abort(signal.reason);
  const timer = setTimeout(() => ending.abort(noAnswer()), timeoutMs);
  signal?.addEventListener('abort', abort);
  const gaveUp = new Promise((_, reject) => {
    ending.signal.addEventListener('abort', () => reject(ending.signal.reason));
  });
  try {
    // A `fetch` from the options may ignore the signal.
    return await Promise.race([answerTo(call, url, { ...options, signal: ending.signal }), gaveUp]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

async function answerTo(call, url, options) {
  // A redirect would take the consumer's key to another address.
  const response = await call(url, { ...options, redirect: 'manual' });
  const text = await response.text();
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    text,
  };
}
