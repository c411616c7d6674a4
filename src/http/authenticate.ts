/**
 * Who calls: `Authorization: Bearer <key>` of the kind that the endpoint is for, on the legacy endpoints
 * `X-Service-Key: <legacy key>` (specification section 5).
 */
import type { IncomingMessage } from 'node:http';
import { findKeyOwner, type KeyDeps } from '../charging/find-key-owner.ts';
import { kindOfKey } from '../domain/api-keys.ts';
import { ApiError, type ErrorCode } from '../domain/errors.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import type { LastUsedRecorder } from '../charging/last-used-recorder.ts';
import type { RateLimits } from './rate-limits.ts';
import { whenKnown, type MaybePromise } from '../charging/maybe-promise.ts';

export interface AuthenticationDeps extends KeyDeps {
  readonly lastUsed: LastUsedRecorder;
  readonly rateLimits: Pick<RateLimits, 'failedKeys'>;
}

export type Role = 'consumer' | 'developer' | 'either' | 'legacy';

/**
 * The owner of the key, at once where it is in memory. Missing, malformed, unknown, revoked, of another
 * kind: all the same 401, and 429 for an address that sends too many of those.
 */
export function authenticate(
  deps: AuthenticationDeps,
  request: IncomingMessage,
  role: Role,
): MaybePromise<KeyOwner> {
  const key = role === 'legacy' ? request.headers['x-service-key'] : bearerOf(request);
  const owner = typeof key === 'string' ? ownerInRole(deps, key, role) : undefined;
  return whenKnown(owner, (found) => {
    if (!found) return refuse(deps, request, role);
    deps.lastUsed.add(found.keyId);
    return found;
  });
}

async function refuse(
  { rateLimits }: AuthenticationDeps,
  { socket }: IncomingMessage,
  role: Role,
): Promise<never> {
  await rateLimits.failedKeys?.count(socket.remoteAddress ?? '');
  throw new ApiError(...REFUSALS[role]);
}

const CONSUMER_KEY = 'Send a consumer key: Authorization: Bearer <consumer key>.';
const REFUSALS: Readonly<Record<Role, [ErrorCode, string]>> = {
  consumer: ['invalid_api_key', CONSUMER_KEY],
  either: ['invalid_api_key', CONSUMER_KEY],
  developer: [
    'invalid_secret_key',
    'Send a developer secret key: Authorization: Bearer <secret key>.',
  ],
  legacy: ['invalid_api_key', 'Send a legacy key: X-Service-Key: <key>.'],
};

function bearerOf({ headers }: IncomingMessage): string | undefined {
  const { authorization = '' } = headers;
  return authorization.startsWith('Bearer ')
    ? authorization.slice(7).trim()
    : /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

function ownerInRole(
  deps: AuthenticationDeps,
  key: string,
  role: Role,
): MaybePromise<KeyOwner | undefined> {
  if (role !== 'either') return findKeyOwner(deps, key, role);
  const isDeveloper = kindOfKey(deps.keyPrefix, key) === 'developer';
  return findKeyOwner(deps, key, isDeveloper ? 'developer' : 'consumer');
}
