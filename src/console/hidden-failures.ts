/**
 * Failures of the database that the library would hide: it would answer a request to sign out as if it had worked, and
 * others as if the session had ended. Here they are met before the library, and thrown.
 */
import type { BetterAuthPlugin } from 'better-auth';
import { createAuthMiddleware } from 'better-auth/api';

export function hiddenFailures() {
  return {
    id: 'farebox-hidden-failures',
    hooks: {
      before: [
        {
          matcher: () => true,
          handler: createAuthMiddleware(async (ctx) => {
            const { adapter, authCookies, internalAdapter, secret } = ctx.context;
            // Without a request, it is `getSession` for a caller of the API, which throws (console.ts).
            if (!ctx.request) return;
            const token = await ctx.getSignedCookie(authCookies.sessionToken.name, secret);
            if (typeof token !== 'string') return;
            if (ctx.path !== '/sign-out') {
              await internalAdapter.findSession(token);
              return;
            }
            // Not `deleteSession`, which deletes nothing when it cannot read the session first.
            await adapter.deleteMany({
              model: 'session',
              where: [{ field: 'token', value: token }],
            });
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}
