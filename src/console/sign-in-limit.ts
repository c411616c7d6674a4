/**
 * Limits how often anybody may try the password of one address, in addition to the limits by client address,
 * and how often a code signs in. Reports each attempt that failed.
 */
import { APIError, createAuthMiddleware, getSessionFromCtx, isAPIError } from 'better-auth/api';
import { deleteSessionCookie } from 'better-auth/cookies';
import type { SignInState } from '../store/console/users.ts';
import { ADDRESS_HEADER, placeOf } from './client-address.ts';

export const WINDOW_MINUTES = 15;
/** Beyond it, the password is not looked at. A person who types needs fewer, a program that guesses far more. */
const ATTEMPTS_MAX = 10;

/** In a row, by anybody who knows the password. After these, even a right code is refused for a window. */
export const WRONG_CODES_MAX = 10;

/** Beyond it, no link is mailed. Otherwise, anybody could fill the mailbox of an address from many places. */
export const LINKS_MAX = 10;

export interface SignInLimitDeps {
  /** Counts an attempt, and returns how many there were in the window, this one included. */
  readonly count: (name: string, windowMinutes: number) => Promise<number>;
  readonly forget: (name: string) => Promise<void>;
  readonly isKnownPlace: (attempt: {
    readonly email: string;
    readonly place: string;
  }) => Promise<boolean>;
  readonly stateOf: (email: string) => Promise<SignInState | null>;
  /** The same, after waiting for a change in progress. */
  readonly settledStateOf: (email: string) => Promise<SignInState | null>;
  readonly onFailed: (attempt: FailedAttempt) => void;
}

/** Does not say who it was: the address may be somebody else's, or a password typed into the wrong field. */
export interface FailedAttempt {
  readonly by: string;
  readonly status: number;
  readonly client: string | undefined;
}

const SIGN_IN_PATH = '/sign-in/email';
/** They take a password: of the address that they name, or of the session's. */
const SET_UP_PATH = '/two-factor/enable';
const PASSWORDS = new Set([SIGN_IN_PATH, SET_UP_PATH, '/two-factor/disable']);
const CODES = /^\/two-factor\/verify-[\w-]+$/;
const PROOFS = /^\/(?:two-factor\/verify-[\w-]+|passkey\/verify-authentication)$/;

/** The names of an address's counts. Names with spaces are no addresses. */
export function countsOf(email: string) {
  return {
    elsewhere: email,
    signedIn: `${email} signed in`,
    from: (place: string) => `${email} from ${place}`,
  };
}

export function signInLimit({
  count,
  forget,
  isKnownPlace,
  stateOf,
  settledStateOf,
  onFailed,
}: SignInLimitDeps) {
  const tried = new WeakMap<
    object,
    { email: string; name: string | undefined; state: SignInState | null }
  >();
  /**
   * How an attempt is counted. Strangers who guess do not keep the owner out of a session, nor from places
   * where the owner signed in.
   */
  async function nameOf({ path, headers }: Attempt, email: string): Promise<string> {
    const names = countsOf(email);
    if (path !== SIGN_IN_PATH) return names.signedIn;
    const place = placeOf(headers);
    const isKnown = place !== undefined && (await isKnownPlace({ email, place }));
    return isKnown ? names.from(place) : names.elsewhere;
  }
  return {
    /** The encrypted secret before the code was compared with it. */
    secretIn: (context: object) => tried.get(context)?.state?.secret ?? null,
    before: createAuthMiddleware(async (ctx) => {
      const { path, headers } = ctx;
      const counted = await emailOf(ctx);
      const email = counted ?? (await emailOfCode(ctx));
      if (email === undefined) return;
      if (path === SET_UP_PATH && (await stateOf(email)) === null)
        throw new APIError('BAD_REQUEST', NO_PASSWORD);
      const name = counted === undefined ? undefined : await nameOf(ctx, counted);
      if (name === undefined || (await count(name, WINDOW_MINUTES)) <= ATTEMPTS_MAX) {
        tried.set(ctx.context, { email, name, state: await stateOf(email) });
        return;
      }
      onFailed({ by: path, status: 429, client: clientOf(headers) });
      throw new APIError('TOO_MANY_REQUESTS', {
        code: 'TOO_MANY_ATTEMPTS',
        message: `Too many attempts to sign in with this address. Wait ${WINDOW_MINUTES} minutes, or choose a new password.`,
      });
    }),
    after: createAuthMiddleware(async (ctx) => {
      const { path, context, headers } = ctx;
      const { returned } = context;
      if (!isAPIError(returned)) {
        const attempt = tried.get(context);
        if (!attempt) return;
        const { email, name, state } = attempt;
        const now = await settledStateOf(email);
        if (state?.password !== now?.password) await endNewSession(ctx, PASSWORD_CHANGED);
        if (path === SIGN_IN_PATH && state?.hasSecondFactor !== now?.hasSecondFactor) {
          await endNewSession(ctx, SECOND_FACTOR_CHANGED);
        }
        // The secret in the response was not stored: see migrations/functions/keep_confirmed_secret.sql.
        if (path === SET_UP_PATH && now?.hasSecondFactor === true) {
          throw new APIError('BAD_REQUEST', ALREADY_ON);
        }
        if (name !== undefined) await forget(name);
      } else if (PASSWORDS.has(path) || PROOFS.test(path)) {
        onFailed({ by: path, status: returned.statusCode, client: clientOf(headers) });
      }
    }),
  };
}

const PASSWORD_CHANGED = {
  code: 'PASSWORD_CHANGED',
  message: 'The password has just been changed. Sign in with the new one.',
};
const SECOND_FACTOR_CHANGED = {
  code: 'SECOND_FACTOR_CHANGED',
  message: 'Two-factor authentication has just been turned on or off. Sign in again.',
};
/** A person who signed in by a sign-in link may never have chosen one. */
const NO_PASSWORD = {
  code: 'NO_PASSWORD',
  message:
    'Your account has no password yet. Use "Send link" above to choose one, then set this up.',
};
const ALREADY_ON = {
  code: 'TOTP_ALREADY_ENABLED',
  message: 'Two-factor authentication has just been turned on in another window.',
};

/**
 * A new password ends the sessions that the old one started, and turning on two-factor authentication ends
 * those without a code. Either may happen after the library has read the person and before it makes the
 * session, so this ends that session too.
 */
async function endNewSession(
  ctx: Attempt,
  why: { readonly code: string; readonly message: string },
): Promise<never> {
  const { newSession, internalAdapter } = ctx.context;
  if (newSession) await internalAdapter.deleteSession(newSession.session.token);
  ctx.context.setNewSession(null);
  deleteSessionCookie(ctx);
  throw new APIError('UNAUTHORIZED', why);
}

export const TOTP_PATH = '/two-factor/verify-totp';
export const TURN_OFF_PATH = '/two-factor/disable';

/**
 * If two requests send the same right code at once, one signs in. The other has to send the password again:
 * its proof is used up.
 */
export function refuseUsedCode(uses: number): void {
  if (uses <= 1) return;
  throw new APIError('UNAUTHORIZED', {
    code: 'CODE_ALREADY_USED',
    message: 'This code was already used. Type your password again, then the next code.',
  });
}

/** Another window has replaced the secret that the code belongs to, so the entry in the app no longer works. */
export function refuseReplacedSecret(): never {
  throw new APIError('BAD_REQUEST', {
    code: 'SECRET_REPLACED',
    message: 'Two-factor authentication has since been set up in another window. Start again.',
  });
}

type Attempt = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0];

/** The address whose password is tried; undefined if none is. */
async function emailOf(ctx: Attempt): Promise<string | undefined> {
  if (!PASSWORDS.has(ctx.path)) return undefined;
  if (ctx.path !== SIGN_IN_PATH) return (await getSessionFromCtx(ctx))?.user.email;
  const { email } = (ctx.body ?? {}) as { readonly email?: unknown };
  // Names with spaces are those of other counts (src/store/console/sign-in-attempts.ts). No address has one.
  return typeof email === 'string' && !email.includes(' ') ? email : undefined;
}

/**
 * The address of the person whose code is tried, in a session or after the password; undefined when no code
 * is tried.
 */
async function emailOfCode(ctx: Attempt): Promise<string | undefined> {
  if (!CODES.test(ctx.path)) return undefined;
  const session = await getSessionFromCtx(ctx);
  if (session) return session.user.email;
  const { createAuthCookie, internalAdapter, secret } = ctx.context;
  // The library's plugin sets this cookie after the password, for a sign-in that still lacks its code.
  const half = await ctx.getSignedCookie(createAuthCookie('two_factor').name, secret);
  const verification = half ? await internalAdapter.findVerificationValue(half) : null;
  const person = verification && (await internalAdapter.findUserById(verification.value));
  return person?.email;
}

function clientOf(headers: Headers | undefined): string | undefined {
  return headers?.get(ADDRESS_HEADER) ?? undefined;
}
