/**
 * One HTTP request to Farebox, and what its answer means: done, did nothing, or unknown because it was
 * lost. Never rejects. Any runtime with fetch will do.
 */

// The connection was never made, so the request was never sent. After any other network error it may
// have been.
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

export class Transport {
  #baseUrl;
  #secretKey;

  constructor(baseUrl, secretKey) {
    this.#baseUrl = baseUrl;
    this.#secretKey = secretKey;
  }

  /** `{ status, headers, json }`, or `{ cause }` when there was no answer. */
  async request(path, { timeoutMs, headers, ...options }) {
    try {
      const response = await fetch(this.#baseUrl + path, {
        ...options,
        headers: { Authorization: `Bearer ${this.#secretKey}`, ...headers },
        // A redirect would take the consumer's key to another address.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      const json = parseJson(await response.text());
      return { status: response.status, headers: response.headers, json };
    } catch (cause) {
      return { cause };
    }
  }
}

/**
 * What an answer other than the one asked for means, or none. Only a body in Farebox's own shape counts
 * as Farebox speaking. A member of a batch has no headers.
 */
export function failureOf({ status, headers, json, cause }) {
  if (cause !== undefined) {
    const unknown = !NEVER_SENT.has(cause.cause?.code);
    return { unknown, retryable: true, cause, reason: reasonOf(cause) };
  }
  const error = typeof json?.error?.code === 'string' ? json.error : undefined;
  const didNothing = status === 503 ? error !== undefined : status >= 300 && status < 500;
  const unknown = status === 409 || !didNothing;
  return {
    status,
    error,
    unknown,
    refused: error !== undefined && !unknown && status !== 503,
    retryable: unknown || status === 429 || status === 503,
    retryAfterMs: retryAfterMs(headers?.get('retry-after')),
    reason: `status ${status}${error ? `, ${error.code}` : ''}`,
  };
}

function reasonOf(cause) {
  if (cause.name === 'TimeoutError') return 'timed out';
  return cause.cause?.code ?? cause.cause?.message ?? cause.message;
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `Retry-After` as seconds or as a date. */
function retryAfterMs(value) {
  if (typeof value !== 'string') return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : ms;
}
