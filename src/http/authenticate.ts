/**
 * Authenticates and authorizes callers; no other place does. With a key: `Authorization: Bearer <key>` with the kind of
 * key that the endpoint takes, or `X-Service-Key: <legacy key>` on the legacy endpoints (specification section 5). With
 * the console's session cookie: the owner may act in either role, and may make changes only from the console's pages.
 */
import type { IncomingMessage } from 'node:http';
import { findKeyOwner, type KeyDeps } from '../charging/find-key-owner.ts';
import type { Console, SignedInOwner } from '../console/console.ts';
import { KEY_LENGTH_MAX, kindOfKey } from '../domain/api-keys.ts';
import { ApiError, type ErrorCode } from '../domain/errors.ts';
import { findActiveCredentials, type Credential } from '../store/accounts/active-credentials.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import type { Connection } from '../store/database.ts';
import type { LastUsedRecorder } from '../charging/last-used-recorder.ts';
import { isSignedIn } from './callers.ts';
import { networkOf } from './client-network.ts';
import type { RateLimits } from './rate-limits.ts';
import { whenKnown, type MaybePromise } from '../charging/maybe-promise.ts';
import { hashOfKey } from '../store/accounts/api-keys.ts';

export interface AuthenticationDeps extends KeyDeps {
  readonly lastUsed: LastUsedRecorder;
  readonly rateLimits: Pick<RateLimits, 'failedKeys'>;
  readonly console: Pick<Console, 'hasSession' | 'isFromOwnPage' | 'findCaller'>;
}

/**
 * `session`: only the owner, signed in, because no key may create or revoke keys of the account. `operator`: such an
 * owner who was promoted and uses two-factor authentication. `payer`: a consumer key of the account or a spend key.
 * `asker`: either of these, or a secret key. No other role accepts a spend key.
 */
export type Role = 'consumer' | 'developer' | 'either' | 'legacy' | 'payer' | 'asker' | SessionRole;
type SessionRole = 'session' | 'operator';
type KeyRole = Exclude<Role, SessionRole>;

/**
 * The owner of the key, synchronously if it is in memory. A key that is missing, malformed, unknown, revoked or of
 * another kind gets the same 401; an address that sends too many of those gets 429.
 */
export function authenticate(
  deps: AuthenticationDeps,
  request: IncomingMessage,
  role: Role,
): MaybePromise<KeyOwner> {
  const key = role === 'legacy' ? request.headers['x-service-key'] : bearerOf(request);
  if (role === 'session' || role === 'operator') return sessionOwner(deps, request, role);
  if (key === undefined && isBySession(deps, request, role)) {
    return sessionOwner(deps, request, role);
  }
  const owner = typeof key === 'string' ? ownerInRole(deps, key, role) : undefined;
  return whenKnown(owner, (found) => {
    if (!found) return refuse(deps, request, role);
    deps.lastUsed.add(found);
    return found;
  });
}

async function refuse(
  { rateLimits }: AuthenticationDeps,
  { socket }: IncomingMessage,
  role: KeyRole,
): Promise<never> {
  await rateLimits.failedKeys?.count(networkOf(socket.remoteAddress));
  throw new ApiError(...REFUSALS[role]);
}

/** For a request that may have waited for long: its key or session may have ended meanwhile. */
export async function authenticateAgain(
  database: Connection,
  caller: KeyOwner,
  role: KeyRole,
): Promise<void> {
  const active = await findActiveCredentials(database, [credentialOf(caller)]);
  if (active.size > 0) return;
  if (isSignedIn(caller)) throw new ApiError('session_required', SESSION_ENDED);
  throw new ApiError(...REFUSALS[role]);
}

const SESSION_ENDED = 'Your session has ended. Sign in again.';

export type KeysInMemory = Pick<KeyDeps['keys'], 'peek'>;

/** The owner of the request's key, if known without a query; for the log. */
export function ownerInMemory(keys: KeysInMemory, request: IncomingMessage): KeyOwner | undefined {
  const key = bearerOf(request) ?? request.headers['x-service-key'];
  if (typeof key !== 'string' || key.length > KEY_LENGTH_MAX) return undefined;
  return keys.peek(hashOfKey(key));
}

const REFUSALS: Readonly<Record<KeyRole, [ErrorCode, string]>> = {
  consumer: ['invalid_api_key', needs('consumer key', '<consumer key>')],
  either: ['invalid_api_key', needs('consumer key or secret key')],
  payer: ['invalid_api_key', needs('consumer key or spend key')],
  asker: ['invalid_api_key', needs('consumer key, spend key or secret key')],
  developer: ['invalid_secret_key', needs('secret key', '<secret key>')],
  legacy: [
    'invalid_api_key',
    'This request needs an active legacy key. Send X-Service-Key: <key>.',
  ],
};

function needs(kind: string, key = '<key>'): string {
  return `This request needs an active ${kind}. Send Authorization: Bearer ${key}.`;
}

/** A request with a key is authenticated by the key; its cookies are ignored. */
function isBySession(
  { console }: AuthenticationDeps,
  request: IncomingMessage,
  role: Role,
): boolean {
  return (
    role !== 'legacy' && request.headers.authorization === undefined && console.hasSession(request)
  );
}

async function sessionOwner(
  { console }: AuthenticationDeps,
  request: IncomingMessage,
  role: Role,
): Promise<KeyOwner> {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (!isRead && console.hasSession(request) && !console.isFromOwnPage(request)) {
    throw new ApiError('foreign_origin', 'This change did not come from a page of the console.');
  }
  const isDeveloper = role === 'developer' || (role === 'either' && asksAsDeveloper(request));
  const owner = console.hasSession(request)
    ? await console.findCaller(request, isDeveloper ? 'developer' : 'consumer')
    : undefined;
  if (!owner) {
    const message = console.hasSession(request)
      ? SESSION_ENDED
      : 'This request needs a session of the console, and takes no key. Sign in to the console.';
    throw new ApiError('session_required', message);
  }
  if (role === 'operator') demandOperator(owner);
  return owner;
}

function demandOperator({ isOperator, hasSecondFactor }: SignedInOwner): void {
  if (!isOperator) throw new ApiError('operator_required', 'Your account is not an operator.');
  if (hasSecondFactor) return;
  throw new ApiError(
    'second_factor_required',
    'Operators need two-factor authentication. Turn it on under Security.',
  );
}

/** `?as=developer`: a session has both roles, and some reads serve either. */
function asksAsDeveloper({ url = '' }: IncomingMessage): boolean {
  return new URLSearchParams(url.split('?')[1]).get('as') === 'developer';
}

/** The key or the session that authenticated the caller. */
export function credentialOf(caller: KeyOwner): Credential {
  return isSignedIn(caller)
    ? { kind: 'session', id: caller.sessionId }
    : { kind: 'key', id: caller.keyId };
}

function bearerOf({ headers }: IncomingMessage): string | undefined {
  const { authorization = '' } = headers;
  return authorization.startsWith('Bearer ')
    ? authorization.slice(7).trim()
    : /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

function ownerInRole(
  deps: AuthenticationDeps,
  key: string,
  role: KeyRole,
): MaybePromise<KeyOwner | undefined> {
  if (role !== 'either' && role !== 'asker') return findKeyOwner(deps, key, role);
  if (kindOfKey(deps.keyPrefix, key) === 'developer') return findKeyOwner(deps, key, 'developer');
  return findKeyOwner(deps, key, role === 'asker' ? 'payer' : 'consumer');
}
