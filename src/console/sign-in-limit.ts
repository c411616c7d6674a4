/** Limits how often anybody may try the password of one address, in addition to the limits by client address. */
import { APIError, createAuthMiddleware } from 'better-auth/api';

export interface SignInLimitDeps {
  /** Counts an attempt; false past the limit. */
  readonly mayTry: (email: string) => Promise<boolean>;
  readonly forget: (email: string) => Promise<void>;
}

const PATH = '/sign-in/email';

export function signInLimit({ mayTry, forget }: SignInLimitDeps) {
  return {
    before: createAuthMiddleware(async ({ path, body }) => {
      const email = path === PATH ? emailOf(body) : undefined;
      if (email === undefined || (await mayTry(email))) return;
      throw new APIError('TOO_MANY_REQUESTS', {
        message:
          'Too many attempts to sign in with this address. Wait 15 minutes, or choose a new password.',
      });
    }),
    after: createAuthMiddleware(async ({ path, body, context }) => {
      const email = path === PATH ? emailOf(body) : undefined;
      if (email !== undefined && !(context.returned instanceof APIError)) await forget(email);
    }),
  };
}

function emailOf(body: unknown): string | undefined {
  const { email } = (body ?? {}) as { readonly email?: unknown };
  return typeof email === 'string' ? email : undefined;
}
