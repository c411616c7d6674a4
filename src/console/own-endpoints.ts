/**
 * Endpoints that better-auth lacks: a sign-up that asks only for the address, and links that sign in once. Nobody has a
 * password before their address is verified, so nobody can set one for an address that is not theirs. It also
 * replaces the library's password reset, whose response time reveals whether an address has an account.
 */
import type { AuthContext, BetterAuthPlugin } from 'better-auth';
import { createAuthEndpoint, createAuthMiddleware } from 'better-auth/api';
import { setSessionCookie } from 'better-auth/cookies';
import { z } from 'zod';
import { EMAIL_LENGTH_MAX, EMAIL_PATTERN } from '../domain/email.ts';

const Email = z.email({ pattern: EMAIL_PATTERN });

export interface OwnEndpointDeps {
  /** Whether anybody may sign up; otherwise, only addresses that already have an account. */
  readonly mayCreate: (email: string) => Promise<boolean>;
  readonly isClosed: boolean;
  readonly sendLink: (email: string) => Promise<unknown>;
  /** The address of a link that can be used. */
  readonly findLink: (token: string) => Promise<string | null>;
  /** False if another request has used it. */
  readonly useLink: (token: string) => Promise<boolean>;
  /** Whether the person has two-factor authentication, after waiting for a change in progress. */
  readonly isCodeNeeded: (userId: string) => Promise<boolean>;
  readonly onError: (error: unknown) => void;
}

export function ownEndpoints(deps: OwnEndpointDeps) {
  return {
    id: 'farebox',
    endpoints: {
      startSignUp: startSignUp(deps),
      useSignInLink: useSignInLink(deps),
    },
    hooks: {
      before: [
        {
          matcher: ({ path }) => path === '/request-password-reset',
          handler: createAuthMiddleware(async ({ request, body }) => {
            const asked = ResetBody.safeParse(body);
            // Without a request, it is `sendLink`. The library refuses what is no address.
            if (!request || !asked.success) return undefined;
            void deps.sendLink(asked.data.email).catch(deps.onError);
            return { status: true };
          }),
        },
      ],
    },
    rateLimit: [
      { pathMatcher: (path) => path === '/sign-up', window: 60, max: 10 },
      { pathMatcher: (path) => path === '/sign-in-link', window: 60, max: 20 },
    ],
  } satisfies BetterAuthPlugin;
}

function startSignUp(deps: OwnEndpointDeps) {
  return createAuthEndpoint(
    '/sign-up',
    { method: 'POST', body: z.object({ email: Email.max(EMAIL_LENGTH_MAX) }) },
    async (ctx) => {
      if (deps.isClosed) throw ctx.error('FORBIDDEN', { message: 'Sign-up is closed.' });
      const email = ctx.body.email.toLowerCase();
      const { internalAdapter } = ctx.context;
      const invite = async () => {
        const known = await internalAdapter.findUserByEmail(email);
        if (!known && !(await deps.mayCreate(email))) return;
        if (!known) await internalAdapter.createUser(newUser(email), SOURCE);
        await deps.sendLink(email);
      };
      // Not awaited: the reply and its timing must not reveal whether the address has an account.
      void invite().catch(deps.onError);
      return ctx.json({ status: true });
    },
  );
}

function useSignInLink(deps: OwnEndpointDeps) {
  return createAuthEndpoint(
    '/sign-in-link',
    { method: 'POST', body: z.object({ token: z.string().max(100) }) },
    async (ctx) => {
      const { token } = ctx.body;
      const email = await deps.findLink(token);
      if (email === null) throw ctx.redirect(USED);
      const { internalAdapter } = ctx.context;
      const found = await internalAdapter.findUserByEmail(email);
      // A link is one factor: where a code is asked for, it does not stand in for the password.
      const demandNoCode = async (userId: string, undo = async () => {}) => {
        if (!(await deps.isCodeNeeded(userId))) return;
        await undo();
        await deps.useLink(token);
        throw ctx.redirect('/console/sign-in?reason=two-factor');
      };
      if (found) await demandNoCode(found.user.id);
      const user = found?.user ?? (await createPerson(internalAdapter, email));
      const session = await internalAdapter.createSession(user.id);
      // Turning it on ends only the sessions that are there.
      await demandNoCode(user.id, () => internalAdapter.deleteSession(session.token));
      // After everything that can fail, so that the link works until somebody is signed in.
      if (!(await deps.useLink(token))) {
        await internalAdapter.deleteSession(session.token);
        throw ctx.redirect(USED);
      }
      await setSessionCookie(ctx, { session, user });
      throw ctx.redirect('/console/');
    },
  );
}

type People = AuthContext['internalAdapter'];

/** If two requests arrive at once, one creates the person and both get it. */
async function createPerson(people: People, email: string) {
  try {
    return await people.createUser(newUser(email), SOURCE);
  } catch (error) {
    const created = await people.findUserByEmail(email);
    if (!created) throw error;
    return created.user;
  }
}

const ResetBody = z.object({ email: Email });

const USED = '/console/sign-in?reason=link';

/** better-auth asks how a person signed up. */
const SOURCE = { method: 'email-password' } as const;

const newUser = (email: string) => ({
  email,
  name: email.slice(0, email.indexOf('@')),
  emailVerified: false,
});
