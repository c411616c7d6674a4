/** Who calls: `Authorization: Bearer <key>` of the kind that the endpoint is for (specification section 5). */
import type { IncomingMessage } from 'node:http';
import { findKeyOwner, type ChargingDeps } from '../charging/charging.ts';
import { ApiError } from '../domain/errors.ts';
import type { KeyOwner } from '../store/api-keys.ts';
import type { KeyUse } from '../charging/key-use.ts';

export interface AuthenticationDeps extends Pick<ChargingDeps, 'keyPrefix' | 'keys'> {
  readonly keyUse: KeyUse;
}

export type Role = 'consumer' | 'developer' | 'either';

/** The owner of the key. Missing, malformed, unknown, revoked, of another kind: all the same 401. */
export async function authenticate(
  deps: AuthenticationDeps,
  request: IncomingMessage,
  role: Role,
): Promise<KeyOwner> {
  const header = request.headers.authorization ?? '';
  const key = header.startsWith('Bearer ')
    ? header.slice(7).trim()
    : /^Bearer +(\S+)$/i.exec(header)?.[1];
  const owner = key === undefined ? undefined : await ownerInRole(deps, key, role);
  if (owner) {
    deps.keyUse.note(owner.keyId);
    return owner;
  }
  throw role === 'developer'
    ? new ApiError(
        'invalid_secret_key',
        'Send a developer secret key: Authorization: Bearer <secret key>.',
      )
    : new ApiError('invalid_api_key', 'Send a consumer key: Authorization: Bearer <consumer key>.');
}

async function ownerInRole(
  deps: AuthenticationDeps,
  key: string,
  role: Role,
): Promise<KeyOwner | undefined> {
  if (role !== 'either') return findKeyOwner(deps, key, role);
  return (await findKeyOwner(deps, key, 'consumer')) ?? findKeyOwner(deps, key, 'developer');
}
