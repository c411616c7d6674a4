/**
 * Requests to our own API, authenticated by the session cookie. A failed request throws ApiFailure, whose message
 * can be shown to the user; so does a network failure. `watchConnection` reports whether the API can be reached.
 */
const unreachable = { current: false };
const watchers = new Set<() => void>();

export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: number;
  readonly code: string;
  readonly param: string | undefined;
  readonly requestId: string | undefined;

  constructor(status: number, body: Record<string, unknown>, message: string) {
    super(message);
    this.status = status;
    this.code = (body['code'] as string | undefined) ?? 'unreachable';
    this.param = body['param'] as string | undefined;
    this.requestId = body['requestId'] as string | undefined;
  }
}

export const read = <T>(path: string): Promise<T> => request<T>('GET', path);
export const write = <T>(path: string, body: object = {}, method = 'POST'): Promise<T> =>
  request<T>(method, path, body);
/** The sign-in endpoints, which Better Auth serves. */
export const auth = <T>(path: string, body?: object): Promise<T> =>
  request<T>(body ? 'POST' : 'GET', `/console/auth${path}`, body);

async function request<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(path, {
    method,
    credentials: 'same-origin',
    ...(body
      ? { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
      : {}),
  }).catch(() => undefined);
  if (!response || response.status === 502 || response.status === 503) {
    setUnreachable(true);
    throw new ApiFailure(0, {}, 'Farebox cannot be reached. Nothing was changed.');
  }
  setUnreachable(false);
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer as T;
  // Our API wraps its errors; the sign-in endpoints do not.
  const error = (answer['error'] ?? answer) as Record<string, unknown>;
  throw new ApiFailure(response.status, error, sentenceOf(response, error));
}

function sentenceOf(response: Response, error: Record<string, unknown>): string {
  if (response.status === 429) return 'Too many attempts. Wait a minute, then try again.';
  const message = (error['message'] as string | undefined) ?? 'Something went wrong.';
  return message.endsWith('.') ? message : `${message}.`;
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
