/**
 * One HTTP request to Farebox, and what its answer means: done, did nothing, or unknown because it was
 * lost. Never rejects. Under Node it goes by node:http, elsewhere by fetch.
 */
import { send } from '#send';

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

  /** `{ status, header(name), json }`, or `{ cause }` when there was no answer. */
  async request(path, { headers, ...options }) {
    try {
      const { status, header, text } = await send(this.#baseUrl + path, {
        ...options,
        headers: { Authorization: `Bearer ${this.#secretKey}`, ...headers },
      });
      return { status, header, json: parseJson(text) };
    } catch (cause) {
      return { cause };
    }
  }
}

/**
 * What an answer other than the one asked for means, or none. Only a body in Farebox's own shape counts
 * as Farebox speaking. A member of a batch has no headers.
 */
export function failureOf({ status, header, json, cause }) {
  if (cause !== undefined) {
    const unknown = !NEVER_SENT.has(codeOf(cause));
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
    retryAfterMs: retryAfterMs(header?.('retry-after')),
    reason: `status ${status}${error ? `, ${error.code}` : ''}`,
  };
}

function reasonOf(cause) {
  if (cause.name === 'TimeoutError') return 'timed out';
  return codeOf(cause) ?? cause.cause?.message ?? cause.message;
}

/** fetch wraps what went wrong, node:http does not. */
function codeOf(cause) {
  return cause.cause?.code ?? cause.code;
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
