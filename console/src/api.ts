/**
 * Requests to our own API, authenticated by the session cookie. A failed request throws ApiFailure, whose message
 * can be shown to the user; so does a network failure. `watchConnection` reports whether the API can be reached.
 */
import type { Session } from './answers.ts';
import { accountOfPage, maySend, nowSignedIn, signedInAgain, signInsSoFar } from './session.ts';

const unreachable = { current: false };
const watchers = new Set<() => void>();

interface Origin {
  readonly isOfSession?: boolean;
  /** The header of this name. */
  readonly retryAfter?: string | null;
}

export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: number;
  readonly code: string;
  readonly param: string | undefined;
  readonly requestId: string | undefined;
  /** The top-up that failed, if one did. */
  readonly topUpId: string | undefined;
  /** The tool that already has the name, if one does. */
  readonly toolId: string | undefined;
  /** Whether the request was sent with the session, and not with a key. */
  readonly isOfSession: boolean;

  /** After how many seconds the request may be sent again, if the API said so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    status: number,
    body: Record<string, unknown>,
    message: string,
    { isOfSession = true, retryAfter }: Origin = {},
  ) {
    super(message);
    this.isOfSession = isOfSession;
    this.retryAfterSeconds = retryAfter ? Number(retryAfter) : undefined;
    this.status = status;
    // The sign-in endpoints have codes of their own.
    this.code = ((body['reason'] ?? body['code']) as string | undefined) ?? 'unreachable';
    this.param = body['param'] as string | undefined;
    this.requestId = body['requestId'] as string | undefined;
    this.topUpId = body['topUpId'] as string | undefined;
    this.toolId = body['toolId'] as string | undefined;
  }
}

/** Without a cookie, after signing out in another tab, the API asks for a key instead of a session. */
const ENDED = new Set([
  'session_required',
  'invalid_api_key',
  'invalid_secret_key',
  // From the sign-in endpoints.
  'UNAUTHORIZED',
]);

/** Whether the failure says that nobody is signed in anymore; a key that was typed into a form has a `param`. */
export function hasSessionEnded(error: unknown): boolean {
  return (
    error instanceof ApiFailure &&
    error.isOfSession &&
    ENDED.has(error.code) &&
    error.param === undefined
  );
}

/** Whether the API could not be reached. */
export function isSilence(error: unknown): boolean {
  return error instanceof ApiFailure && error.status === 0;
}

/** The most that the API asks to wait where waiting is part of the work, such as after too many reads. */
const SOON_SECONDS = 2;

/** Whether the API asked to send the request again in a moment. */
export function mayWorkSoon(error: unknown): boolean {
  return error instanceof ApiFailure && (error.retryAfterSeconds ?? Infinity) <= SOON_SECONDS;
}

/** How often a request is sent again, and after which pause. */
export const SENT_AGAIN_MAX = 3;
export const PAUSE_MS = 1_000;
/** The pause of a computer that slept, or of a page that was in the background: the payer may have left. */
const LONG_PAUSE_MS = 5_000;

/** Sends a request again while the API asks for that. It must have an idempotency key, so that it happens once. */
export async function sendPatiently<T>(send: () => Promise<T>): Promise<T> {
  for (let again = 0; ; again += 1) {
    try {
      return await send();
    } catch (error) {
      if (again === SENT_AGAIN_MAX || !mayWorkSoon(error)) throw error;
      const pausedAt = Date.now();
      await pause();
      if (Date.now() - pausedAt > LONG_PAUSE_MS) throw error;
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}

export interface WriteOptions {
  readonly method?: 'POST' | 'PATCH' | 'DELETE';
  /** A repeated request under the same key happens once. */
  readonly idempotencyKey?: string;
  /** Called if an earlier request with the same key has done it, before the answer is returned. */
  readonly onReplay?: () => void;
  /** Sent in place of the session, as a program would. */
  readonly apiKey?: string;
  /** Whether the API may wait for a payment before it answers. */
  readonly isPayment?: boolean;
}

export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('-');
}

export const read = <T>(path: string): Promise<T> => request<T>('GET', path, {});
export const write = <T>(
  path: string,
  body: object = {},
  { method = 'POST', ...options }: WriteOptions = {},
): Promise<T> => request<T>(method, path, { body, ...options });
/** The sign-in endpoints, which Better Auth serves. */
export const auth = <T>(path: string, body?: object): Promise<T> =>
  request<T>(body ? 'POST' : 'GET', `/console/auth${path}`, { body });
/** The same for requests that sign somebody in. */
export const prove = <T>(path: string, body?: object): Promise<T> =>
  request<T>(body ? 'POST' : 'GET', `/console/auth${path}`, { body, waits: false });
/** The session as it is now. Fails when it has ended. */
export const readSession = (): Promise<Session> =>
  request<Session>('GET', '/v1/session', { waits: false });

interface RequestOptions extends Omit<WriteOptions, 'method'> {
  readonly body?: object | undefined;
  /** Whether it waits for the account to sign in again when the session has ended. */
  readonly waits?: boolean;
  /** Whether it was sent before, and refused because its session had ended. */
  readonly isAgain?: boolean;
}

type Answer = Readonly<Record<string, unknown>>;

/** Otherwise a server that is frozen, or a line that is dead, would keep a dialog open without an end. */
const ANSWERED_WITHIN_MS = 30_000;
/** The API answers that a payment is pending after up to a minute (`TOP_UP_ANSWER_MS`). */
const PAID_WITHIN_MS = 75_000;

/** From a proxy whose server does not answer, or from us. */
const AWAY = new Set([502, 503, 504]);

async function request<T>(method: string, path: string, options: RequestOptions): Promise<T> {
  const {
    body,
    idempotencyKey,
    onReplay,
    apiKey,
    isPayment,
    waits = true,
    isAgain = false,
  } = options;
  if (waits) await maySend();
  const sender = accountOfPage();
  const signIns = signInsSoFar();
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), isPayment ? PAID_WITHIN_MS : ANSWERED_WITHIN_MS);
  const response = await fetch(path, {
    method,
    signal: limit.signal,
    credentials: 'same-origin',
    ...(body
      ? {
          headers: {
            'Content-Type': 'application/json',
            ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
            ...(apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }),
          },
          body: JSON.stringify(body),
        }
      : {}),
  }).catch(() => undefined);
  const answer = (await response?.json().catch(() => undefined)) as Answer | undefined;
  clearTimeout(timer);
  const error = (answer?.['error'] ?? {}) as Answer;
  // A change may need the payment processor, which is away while Farebox answers. Reads need Farebox alone.
  const isOfPart = method !== 'GET' && error['code'] === 'service_unavailable';
  // A success needs its whole answer: it may have a secret that is shown once.
  const isWhole = !response?.ok || answer !== undefined;
  if (!response || !isWhole || (AWAY.has(response.status) && !isOfPart)) {
    setUnreachable(true);
    throw new ApiFailure(0, {}, sentenceOfSilence(response?.status, method, idempotencyKey), {
      retryAfter: response?.headers.get('retry-after') ?? null,
    });
  }
  // PostgreSQL may be the part that is away, and then the reads of the page fail too.
  if (!isOfPart) setUnreachable(false);
  if (response.ok) {
    if (response.headers.get('idempotency-replayed') === 'true') onReplay?.();
    return answer as T;
  }
  const sentence =
    error['code'] === 'outcome_unknown'
      ? `The outcome is not known. ${afterSilence(idempotencyKey)}`
      : sentenceOf(error);
  const failure = new ApiFailure(response.status, error, sentence, {
    isOfSession: apiKey === undefined,
    retryAfter: response.headers.get('retry-after'),
  });
  // A page that has just been opened knows its account a moment later.
  const account = sender ?? accountOfPage();
  if (!waits || account === undefined || !hasSessionEnded(failure)) throw failure;
  // Its session may have been replaced while it was on its way, as when two-factor authentication is turned on.
  const session = isAgain ? undefined : await sessionIfAny();
  // Somebody signed out meanwhile, and another account may have signed in: nobody waits for the answer anymore.
  if (accountOfPage() !== account) return new Promise(() => {});
  if (session) await nowSignedIn(session);
  // An answer that comes late tells of an earlier session: somebody has signed in since the request was sent.
  else if (signIns === signInsSoFar() && !(await signedInAgain())) throw failure;
  return request(method, path, { ...options, isAgain: true });
}

/** Undefined when the session has ended. */
function sessionIfAny(): Promise<Session | undefined> {
  return readSession().catch((error: unknown) => {
    if (hasSessionEnded(error)) return undefined;
    throw error;
  });
}

/**
 * After a change that may have replaced the session. Requests that were refused during the change are sent again. A
 * read that fails is sent again: those requests may have opened the dialog to sign in, which only a session closes.
 */
export async function continueSession(): Promise<void> {
  for (let again = 0; again <= SENT_AGAIN_MAX; again += 1) {
    if (again > 0) await pause();
    try {
      const session = await sessionIfAny();
      if (session) await nowSignedIn(session);
      return;
    } catch {
      // The last failure leaves it to the dialog, if there is one.
    }
  }
}

const NOTHING_CHANGED = 'Nothing was changed.';

/** A 503 says that nothing happened; a line that is lost during a change does not. */
function sentenceOfSilence(
  status: number | undefined,
  method: string,
  idempotencyKey: string | undefined,
): string {
  if (method === 'GET') return 'Farebox cannot be reached.';
  if (status === 503) return `Farebox is unavailable right now. ${NOTHING_CHANGED}`;
  return `Farebox cannot be reached. ${afterSilence(idempotencyKey)}`;
}

function afterSilence(idempotencyKey: string | undefined): string {
  return idempotencyKey === undefined
    ? 'Your change may not have been saved.'
    : 'You can safely try again: it will happen only once.';
}

function sentenceOf(error: Answer): string {
  // After a lost answer, somebody changed the form and sent it again. They know nothing of the idempotency key.
  if (error['code'] === 'idempotency_key_reused') {
    return 'Your earlier request, with different values, did arrive. Check what it did before you send this one.';
  }
  const message = (error['message'] as string | undefined) ?? 'Something went wrong.';
  const sentence = message.endsWith('.') ? message : `${message}.`;
  const leavesOpen = error['code'] === 'service_unavailable' && !/nothing/i.test(sentence);
  return leavesOpen ? `${sentence} ${NOTHING_CHANGED}` : sentence;
}

export function isUnreachable(): boolean {
  return unreachable.current;
}

export function watchConnection(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function setUnreachable(value: boolean): void {
  if (unreachable.current === value) return;
  unreachable.current = value;
  for (const watcher of watchers) watcher();
}
