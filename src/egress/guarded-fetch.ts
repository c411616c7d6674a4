/**
 * A guarded `fetch` for URLs that others gave us: public addresses only, no redirects, a limit on the response size,
 * and a deadline. Each serves one attempt and shares no connection with another. It records faults itself, because
 * each protocol's client wraps errors in its own way.
 */
import { Agent, fetch, Response, type RequestInit } from 'undici';
import { createConnector, EgressDeniedError } from './connector.ts';
import { endpointProblem } from './endpoints.ts';

export interface GuardedFetchOptions {
  readonly allowPrivate: boolean;
  /** The size limit of each answer, decoded. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export type FaultKind =
  /** No answer, or one that asks to try again later: network, deadline, 408, 425, 429, 5xx, 409 with Retry-After. */
  | 'unavailable'
  /** The address is not allowed. Nothing was sent. */
  | 'denied'
  | 'redirected'
  | 'too_large';

/** Why a guarded fetch gave no answer. */
export class FetchFault extends Error {
  override readonly name = 'FetchFault';
  readonly kind: FaultKind;
  /** The value of Retry-After, when the answer asked to try again later. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: FaultKind, message: string, retryAfterMs?: number) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface GuardedFetch {
  readonly fetch: typeof globalThis.fetch;
  readonly signal: AbortSignal;
  /** The newest fault, if any. */
  readonly fault: FetchFault | undefined;
  /** The status of the newest answer. */
  readonly status: number | undefined;
  close(): Promise<void>;
}

/** At once, of one fetch. Protocols use a few; an agent must not make this process open thousands. */
const CONNECTIONS_MAX = 10;

const COME_BACK_LATER = new Set([408, 425, 429]);

export function openGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const agent = new Agent({
    connect: createConnector(options),
    connections: CONNECTIONS_MAX,
    // The signal enforces the time limit.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let fault: FetchFault | undefined;
  let status: number | undefined;
  const note = (found: FetchFault) => (fault = found);

  const guarded = async (target: string | URL, init?: RequestInit) => {
    const url = String(target);
    const problem = endpointProblem(url, options);
    if (problem) throw note(new FetchFault('denied', `The endpoint ${problem}`));
    const signals = [options.signal, init?.signal].filter((signal) => signal != null);
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      dispatcher: agent,
      signal: AbortSignal.any(signals),
    }).catch((error: unknown) => {
      throw note(faultOf(error));
    });
    status = response.status;
    const refusal = refusalOf(response);
    if (refusal) {
      await response.body?.cancel();
      throw note(refusal);
    }
    if (!response.body) return response;
    const { statusText, headers } = response;
    const body = capped(response.body, options.bytesMax, note);
    return new Response(body, { status: response.status, statusText, headers });
  };

  return {
    // undici's own `fetch`; its types differ slightly from those of Node's built-in one.
    fetch: guarded as unknown as typeof globalThis.fetch,
    signal: options.signal,
    get fault() {
      return fault;
    },
    get status() {
      return status;
    },
    close: () => agent.destroy(),
  };
}

function refusalOf({ status, headers }: Response): FetchFault | undefined {
  if (status >= 300 && status < 400 && status !== 304) {
    return new FetchFault('redirected', `It answered ${status}; redirects are not followed.`);
  }
  const retryAfter = headers.get('retry-after');
  const retryAfterMs = retryAfter === null ? undefined : retryAfterMsOf(retryAfter);
  // An agent that still works on an earlier attempt refuses a second one with the same key until it is done.
  const isInProgress = status === 409 && retryAfterMs !== undefined;
  if (status >= 500 || COME_BACK_LATER.has(status) || isInProgress) {
    return new FetchFault('unavailable', `It answered ${status}.`, retryAfterMs);
  }
  return undefined;
}

/** Parses a Retry-After header: seconds or a date. */
export function retryAfterMsOf(text: string): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}

export function faultOf(error: unknown): FetchFault {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof EgressDeniedError) return new FetchFault('denied', `${cause.message}.`);
    if (cause.name === 'TimeoutError') {
      return new FetchFault('unavailable', 'It did not answer in time.');
    }
    if (!(cause.cause instanceof Error)) return new FetchFault('unavailable', reasonOf(cause));
  }
  return new FetchFault('unavailable', 'The connection failed.');
}

/** Shows an operating system's error by its code, because the message contains addresses. */
function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? 'The connection failed.' : `The connection failed: ${code}.`;
}

/** Passes bytes through, and fails at the first byte over the limit. */
function capped(
  body: ReadableStream<Uint8Array>,
  bytesMax: number,
  note: (fault: FetchFault) => FetchFault,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          bytes += value.byteLength;
          if (bytes <= bytesMax) return controller.enqueue(value);
        } catch (error) {
          return controller.error(note(faultOf(error)));
        }
        controller.error(note(new FetchFault('too_large', `It is larger than ${bytesMax} bytes.`)));
        await reader.cancel();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
