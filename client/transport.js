/**
 * Sends one HTTP request to Farebox and interprets its answer: done, nothing done, or unknown because the answer was
 * lost. Never rejects. Uses node:http under Node, fetch elsewhere.
 */
import { send } from '#send';
import { sendBy } from './send-by.js';
import { USER_AGENT } from './user-agent.js';

// The connection was never made, so the request was never sent. After any other network error, it may have been sent.
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

const IN_USE = 'idempotency_key_in_use';
const LOOKS_UP = new Set([
  'approval_required',
  'developer_not_allowed',
  'hold_closed',
  'lease_closed',
  'lease_fenced',
  'lease_not_renewable',
  'mode_mismatch',
  'refund_exceeds_charge',
  'tool_not_allowed',
]);

export class Transport {
  #baseUrl;
  /** Sent with every request. */
  #headers;
  #send;
  /** The request id of the last answer. */
  lastRequestId;

  constructor(baseUrl, key, fetch) {
    this.#baseUrl = baseUrl;
    this.#headers = { ...USER_AGENT, Authorization: `Bearer ${key}` };
    this.#send = fetch ? sendBy.bind(undefined, fetch) : send;
  }

  /** `{ status, header(name), json }`, or `{ cause, signal }` when there was no answer. */
  async request(path, { headers, ...options }) {
    try {
      const { status, header, text } = await this.#send(this.#baseUrl + path, {
        ...options,
        headers: { ...this.#headers, ...headers },
      });
      this.lastRequestId = header('x-request-id') ?? this.lastRequestId;
      return { status, header, json: parseJson(text) };
    } catch (cause) {
      // A `fetch` from the options may reject with undefined.
      return { cause: cause ?? new Error('no reason'), signal: options.signal };
    }
  }
}

/**
 * Interprets an unsuccessful answer, or no answer. Only a body in Farebox's own shape counts as Farebox's answer. A
 * member of a batch has no headers; its error has `retryAfter`.
 */
export function failureOf({ status, header, json, cause, signal }) {
  if (signal?.aborted) return aborted(signal, true);
  if (cause !== undefined) {
    const unknown = !NEVER_SENT.has(codeOf(cause));
    return { unknown, retryable: true, cause, reason: reasonOf(cause) };
  }
  const error = typeof json?.error?.code === 'string' ? json.error : undefined;
  const didNothing = status === 503 ? error !== undefined : status >= 300 && status < 500;
  // The first request with this key is still running, or a 409 of somebody else. Every other 409 of Farebox
  // is a refusal.
  const mayBeRunning = status === 409 && (error?.code ?? IN_USE) === IN_USE;
  const unknown = mayBeRunning || !didNothing;
  return {
    status,
    error,
    unknown,
    looksUp: looksUp({ status, code: error?.code }),
    refused: error !== undefined && !unknown && status !== 503,
    retryable: unknown || status === 429 || status === 503,
    retryAfterMs: retryAfterMs(header?.('retry-after') ?? error?.retryAfter),
    reason: `status ${status}${error ? `, ${error.code}` : ''}`,
  };
}

/**
 * Whether the service looked up the idempotency key before it refused, or need not, since nothing is ever charged with
 * a test key and a live key. A revoked key is refused before that.
 * A proxy's own answer has no code, and the client's error for it has that of an outage.
 */
export function looksUp({ status, code }) {
  if (code === undefined || code === 'service_unavailable') return false;
  return status === 402 || status === 422 || LOOKS_UP.has(code);
}

/** The caller gave up, before or after something was sent. */
export function aborted(signal, isSent) {
  const cause = signal.reason;
  return { isAborted: true, unknown: isSent, retryable: false, cause };
}

function reasonOf(cause) {
  if (cause.name === 'TimeoutError') return 'timed out';
  return codeOf(cause) ?? cause.cause?.message ?? cause.message;
}

/** fetch wraps the cause of a failure, node:http does not. */
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

/** Seconds or a date, as in `Retry-After`; undefined for anything else. */
function retryAfterMs(value) {
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
