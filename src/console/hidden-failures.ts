/**
 * Failures of the database that the library would hide: it would answer a request to end a session as if it
 * had worked, and others as if the caller's own session had ended. This plugin detects them before the
 * library does, and throws them.
 */
import type { BetterAuthPlugin, Where } from 'better-auth';
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
            // Not `deleteSession`, which deletes nothing when it cannot read the session first.
            const end = (...where: Where[]) => adapter.deleteMany({ model: 'session', where });
            const token = await ctx.getSignedCookie(authCookies.sessionToken.name, secret);
            if (typeof token !== 'string') return;
            if (ctx.path === '/sign-out') {
              await end({ field: 'token', value: token });
              return;
            }
            const found = await internalAdapter.findSession(token);
            if (!found || found.session.expiresAt <= new Date()) return;
            const ofPerson = { field: 'userId', value: found.user.id };
            if (ctx.path === '/revoke-other-sessions') {
              await end(ofPerson, { field: 'token', operator: 'ne', value: token });
            }
            const { token: named } = (ctx.body ?? {}) as { readonly token?: unknown };
            if (ctx.path === '/revoke-session' && typeof named === 'string' && named !== token) {
              await end(ofPerson, { field: 'token', value: named });
            }
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}
