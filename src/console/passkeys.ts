/**
 * Passkeys: a person signs in with a device that holds a private key. The device must verify who uses it, by a PIN, a
 * fingerprint or a face. So a passkey is two factors, and stands in for the password and the code.
 */
import { passkey } from '@better-auth/passkey';
import { APIError } from 'better-auth/api';
import { columns } from './columns.ts';
import { isLoopback, ownOrigins } from './origins.ts';

const NAME_LENGTH_MAX = 100;

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
    message: 'The passkey did not verify who used it. Use one with a PIN, a fingerprint or a face.',
  });
}
