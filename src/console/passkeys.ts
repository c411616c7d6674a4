/**
 * Passkeys: a person signs in with a device that holds a private key. The device must verify who uses it, by a PIN, a
 * fingerprint or a face. So a passkey is two factors, and stands in for the password and the code.
 */
import { passkey, PASSKEY_ERROR_CODES } from '@better-auth/passkey';
import type { BetterAuthPlugin } from 'better-auth';
import { APIError, createAuthMiddleware, isAPIError } from 'better-auth/api';
import { columns } from './columns.ts';
import { isLoopback, ownOrigins } from './origins.ts';

const NAME_LENGTH_MAX = 100;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The library looks up the ids of passkeys and of credentials as they come. Those that cannot exist are
 * refused before.
 */
export function passkeyIds() {
  return {
    id: 'farebox-passkey-ids',
    hooks: {
      before: [
        {
          matcher: ({ path }) => path === '/passkey/delete-passkey',
          handler: createAuthMiddleware(async ({ body }) => {
            const { id } = (body ?? {}) as { readonly id?: unknown };
            if (typeof id !== 'string' || UUID.test(id)) return;
            throw APIError.from('NOT_FOUND', PASSKEY_ERROR_CODES.PASSKEY_NOT_FOUND);
          }),
        },
        {
          matcher: ({ path }) => path === '/passkey/verify-authentication',
          handler: createAuthMiddleware(async ({ body }) => {
            const { response } = (body ?? {}) as { readonly response?: { readonly id?: unknown } };
            if (typeof response?.id === 'string') return;
            throw APIError.from('BAD_REQUEST', PASSKEY_ERROR_CODES.AUTHENTICATION_FAILED);
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}

/** Reports each passkey that was added or removed. It signs in without a password, so its owner must know about it. */
export function changedPasskeys(deps: {
  readonly onAdded: (userId: string) => void;
  readonly onRemoved: (userId: string) => void;
}) {
  return {
    id: 'farebox-changed-passkeys',
    hooks: {
      after: [
        {
          matcher: ({ path }) => path === '/passkey/verify-registration',
          handler: createAuthMiddleware(async ({ context }) => {
            const { returned } = context;
            if (isAPIError(returned)) return;
            deps.onAdded((returned as { readonly userId: string }).userId);
          }),
        },
        {
          matcher: ({ path }) => path === '/passkey/delete-passkey',
          handler: createAuthMiddleware(async ({ context: { returned, session } }) => {
            if (!isAPIError(returned) && session) deps.onRemoved(session.user.id);
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}

export function passkeys(consoleUrl: string) {
  const { hostname } = new URL(consoleUrl);
  return passkey({
    rpName: 'Farebox',
    // Passkeys belong to a host name. On this machine that is `localhost`: 127.0.0.1 is not a name.
    rpID: isLoopback(hostname) ? 'localhost' : hostname,
    origin: [...ownOrigins(consoleUrl)],
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    registration: {
      afterVerification: ({ ctx, verification }) => {
        demandVerifiedUser(verification.registrationInfo?.userVerified);
        const { name } = ctx.body as { readonly name?: string };
        if ((name ?? '').length <= NAME_LENGTH_MAX) return;
        throw new APIError('BAD_REQUEST', {
          code: 'NAME_TOO_LONG',
          message: `The name must have at most ${NAME_LENGTH_MAX} characters.`,
        });
      },
    },
    authentication: {
      afterVerification: ({ verification }) =>
        demandVerifiedUser(verification.authenticationInfo.userVerified),
    },
    schema: {
      passkey: {
        modelName: 'passkeys',
        fields: {
          ...columns('publicKey', 'userId', 'deviceType', 'backedUp', 'createdAt'),
          credentialID: 'credential_id',
        },
      },
    },
  });
}

/** The plugin only asks the browser for it, and a page could ask for less. */
function demandVerifiedUser(isVerified: boolean | undefined): void {
  if (isVerified === true) return;
  throw new APIError('UNAUTHORIZED', {
    code: 'PASSKEY_NOT_VERIFIED',
    message: 'The passkey did not verify who used it. Use one with a PIN, a fingerprint or a face.',
  });
}
