/**
 * Sign-in to the console: better-auth on our PostgreSQL, in the schema `console`. It offers email and password, an
 * optional second factor, and sessions that can be revoked. src/http/authenticate.ts decides what a session may do.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { betterAuth, type BetterAuthOptions } from 'better-auth';
import { twoFactor } from 'better-auth/plugins/two-factor';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../domain/password.ts';
import { securityMails, type SecurityMails } from '../mail/security-mails.ts';
import { mailer } from '../mail/send.ts';
import { setPasswordMail } from '../mail/set-password.ts';
import { findAccount } from '../store/accounts/accounts.ts';
import { findSignInLink, useSignInLink } from '../store/console/sign-in-links.ts';
import {
  countMailedLink,
  countForgottenCodes,
  countSignInAttempt,
  countUsedCode,
  forgetAttempts,
  isKnownPlace,
  notePasswordSet,
} from '../store/console/sign-in-attempts.ts';
import {
  claimAccount,
  findSettledSignInState,
  findSignInState,
  forgetWrongCodes,
  hasSettledSecondFactor,
  hasWrongCodes,
  turnOffSecondFactor,
  turnOnSecondFactor,
} from '../store/console/users.ts';
import type { Database } from '../store/database.ts';
import { IP_ADDRESS, placeOf } from './client-address.ts';
import { clientCounts } from './client-counts.ts';
import { columns } from './columns.ts';
import { commonPasswords } from './common-passwords.ts';
import { hiddenFailures } from './hidden-failures.ts';
import { libraryLog } from './library-log.ts';
import { ownOrigins } from './origins.ts';
import { changedPasskeys, passkeyIds, passkeys } from './passkeys.ts';
import {
  LINKS_MAX,
  refuseReplacedSecret,
  refuseUsedCode,
  signInLimit,
  countsOf,
  TOTP_PATH,
  TURN_OFF_PATH,
  WINDOW_MINUTES,
  WRONG_CODES_MAX,
} from './sign-in-limit.ts';
import { AUTH_PATH } from './paths.ts';
import { ownEndpoints } from './own-endpoints.ts';
import { openPool } from './pool.ts';
import { refusalOf } from './refusals.ts';
import { ReportedFailures } from './reported-failures.ts';
import { librarySecrets } from './secrets.ts';

export interface ConsoleDeps {
  readonly config: Config;
  readonly database: Database;
  readonly log: Logger;
}

const END_MS_MAX = 1_000;
/**
 * How long browsers keep the cookie: as long as a session can last, because only a sign-in sends it. The session itself
 * ends after seven days without use (migrations/functions/end_session_in_time.sql).
 */
const COOKIE_SECONDS = 30 * 86_400;
/** A passkey is added within this time after signing in: a stolen session alone cannot make itself permanent. */
const FRESH_SECONDS = 600;
const LINK_SECONDS = 3_600;

/** The library's tables, as the schema `console` names them. */
const TABLES = {
  user: { modelName: 'users', fields: columns('emailVerified', 'createdAt', 'updatedAt') },
  session: {
    modelName: 'sessions',
    expiresIn: COOKIE_SECONDS,
    // `prolongSession` does that. The library would do it at each request, because it expects thirty days.
    disableSessionRefresh: true,
    freshAge: FRESH_SECONDS,
    fields: columns('expiresAt', 'ipAddress', 'userAgent', 'userId', 'createdAt', 'updatedAt'),
  },
  account: {
    modelName: 'credentials',
    fields: columns(
      ...(['accountId', 'providerId', 'userId', 'accessToken', 'refreshToken', 'idToken'] as const),
      ...(['accessTokenExpiresAt', 'refreshTokenExpiresAt', 'createdAt', 'updatedAt'] as const),
    ),
  },
  verification: {
    modelName: 'verifications',
    storeIdentifier: 'hashed',
    fields: columns('expiresAt', 'createdAt', 'updatedAt'),
  },
} satisfies BetterAuthOptions;

/** At most `max` requests of one client in `window` seconds. */
const CLIENT_RULES = {
  '/sign-in/email': { window: 60, max: 10 },
  '/two-factor/*': { window: 60, max: 10 },
  '/passkey/*': { window: 60, max: 30 },
  '/request-password-reset': { window: 60, max: 10 },
  '/reset-password': { window: 60, max: 10 },
};

export type Auth = ReturnType<typeof createAuth>;

export function createAuth({ config, database, log }: ConsoleDeps) {
  const pool = openPool(config.databaseUrl, log, 'library');
  const counting = openPool(config.databaseUrl, log, 'counts');
  const send = mailer({ config: config.mail, database, log });
  const security = securityMails({ config, database, log });
  const isOverTls = config.consoleUrl.startsWith('https:');
  const mailLink = async (recipient: string, token: string): Promise<void> => {
    if ((await countMailedLink(database, recipient, WINDOW_MINUTES)) > LINKS_MAX) return;
    send(setPasswordMail(recipient, `${config.consoleUrl}/console/set-password?token=${token}`));
  };
  const inBackground = (mailing: Promise<void>): void =>
    void mailing.catch((err: unknown) => log.error({ err }, 'a mail could not be sent'));
  const sendLink = (email: string): Promise<unknown> =>
    auth.api.requestPasswordReset({ body: { email } });
  const limit = signInLimit({
    count: (name, windowMinutes) => countSignInAttempt(database, name, windowMinutes),
    forget: (name) => forgetAttempts(database, name),
    isKnownPlace: (attempt) => isKnownPlace(database, attempt, WINDOW_MINUTES),
    stateOf: (email) => findSignInState(database, email),
    settledStateOf: (email) => findSettledSignInState(database, email),
    onFailed: (attempt) =>
      log.warn({ part: 'console', ...attempt }, 'an attempt to sign in failed'),
  });
  /** Neither guesses of others nor the owner's own keep the owner from signing in with the new password. */
  const ownerProven = async (email: string, place: string | undefined): Promise<void> => {
    const { elsewhere, signedIn, from } = countsOf(email);
    const names = [elsewhere, signedIn, ...(place === undefined ? [] : [from(place)])];
    for (const name of names) await forgetAttempts(database, name);
    if (place !== undefined) await notePasswordSet(database, { email, place }, WINDOW_MINUTES);
    if (!(await hasWrongCodes(database, email))) return;
    // Somebody who reads the owner's mailbox could otherwise guess any number of codes.
    const timesForgotten = await countForgottenCodes(database, email, WINDOW_MINUTES);
    if (timesForgotten === 1) await forgetWrongCodes(database, email);
  };
  const failures = new ReportedFailures();
  const report = libraryLog(log);
  const auth = betterAuth({
    baseURL: config.consoleUrl,
    basePath: AUTH_PATH,
    secrets: librarySecrets(config.masterSecrets),
    trustedOrigins: [...ownOrigins(config.consoleUrl)],
    database: pool,
    telemetry: { enabled: false },
    logger: {
      level: 'error',
      log: (level, text, cause: unknown) => {
        failures.note(cause ?? text);
        report(level, text, cause);
      },
    },
    // By default, it prints each refusal and each failure: not as JSON, and as many as callers like. So
    // failures are thrown, and answered and logged like those of other requests.
    onAPIError: { throw: true },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: PASSWORD_LENGTH_MIN,
      maxPasswordLength: PASSWORD_LENGTH_MAX,
      resetPasswordTokenExpiresIn: LINK_SECONDS,
      revokeSessionsOnPasswordReset: true,
      // Not awaited: how long the request takes must not reveal whether the address has an account.
      sendResetPassword: async ({ user, token }) => inBackground(mailLink(user.email, token)),
      // The password is set and the link is used up, so nothing may fail here.
      onPasswordReset: async ({ user }, request) => {
        security.tell(user.id, 'password_set');
        await ownerProven(user.email, placeOf(request)).catch((err: unknown) =>
          log.error({ err }, 'the attempts to sign in could not be forgotten'),
        );
      },
    },
    ...TABLES,
    rateLimit: {
      enabled: true,
      // The library's own storage counts on until a client has paused for a whole window, however slowly its
      // requests come.
      customStorage: { consume: clientCounts(counting) },
      window: 60,
      max: 300,
      customRules: CLIENT_RULES,
    },
    advanced: {
      // With `__Host-`, no other host of the same domain can set or see the cookies. The library knows
      // `__Secure-` only.
      cookiePrefix: isOverTls ? '__Host-farebox' : 'farebox',
      useSecureCookies: false,
      defaultCookieAttributes: { sameSite: 'lax', httpOnly: true, path: '/', secure: isOverTls },
      ipAddress: IP_ADDRESS,
      database: { generateId: 'uuid' },
    },
    databaseHooks: beforeChanges({ config, database }, security, limit.secretIn),
    hooks: { before: limit.before, after: limit.after },
    plugins: [
      hiddenFailures(),
      twoFactor({
        issuer: 'Farebox',
        // A sign-in may ask that this browser is never asked for a code again. No page does, and none would be trusted.
        trustDeviceMaxAge: 0,
        accountLockout: {
          maxFailedAttempts: WRONG_CODES_MAX,
          durationSeconds: WINDOW_MINUTES * 60,
        },
        schema: {
          user: { fields: columns('twoFactorEnabled') },
          twoFactor: {
            modelName: 'two_factors',
            fields: columns('userId', 'backupCodes', 'failedVerificationCount', 'lockedUntil'),
          },
        },
      }),
      passkeys(config.consoleUrl),
      passkeyIds(),
      changedPasskeys({
        onAdded: (userId) => security.tell(userId, 'passkey_added'),
        onRemoved: (userId) => security.tell(userId, 'passkey_removed'),
      }),
      commonPasswords(),
      ownEndpoints({
        isClosed: config.signUp === 'closed',
        mayCreate: async (email) =>
          config.signUp === 'open' || (await findAccount(database, { email })) !== null,
        sendLink,
        findLink: (token) => findSignInLink(database, token),
        useLink: (token) => useSignInLink(database, token),
        isCodeNeeded: (userId) => hasSettledSecondFactor(database, userId),
        onError: (err) => log.error({ err }, 'a link could not be mailed'),
      }),
    ],
  });
  // A connection whose other side is silent does not close.
  const end = async () => {
    const ended = Promise.all([pool.end(), counting.end()]);
    await Promise.race([ended, delay(END_MS_MAX, undefined, { ref: false })]);
  };
  const pools = { console: pool, consoleCounts: counting };
  return { ...auth, handler: throwing(auth.handler, failures), pools, end };
}

/** What happens before the library changes a row. */
function beforeChanges(
  { config, database }: Pick<ConsoleDeps, 'config' | 'database'>,
  security: SecurityMails,
  secretIn: (context: object) => string | null,
): NonNullable<BetterAuthOptions['databaseHooks']> {
  return {
    session: {
      create: {
        // Signing in takes a mailed link, or a password or passkey that was set up after one. So the address
        // is verified here. If this fails, signing in again repairs it.
        before: async ({ userId }, ctx) => {
          if (ctx?.path === TOTP_PATH) {
            const { code } = ctx.body as { readonly code: string };
            refuseUsedCode(await countUsedCode(database, { userId, code }, WINDOW_MINUTES));
          }
          await claimAccount(database, userId, config);
        },
      },
    },
    user: {
      update: {
        // The library changes the person and the secret one after the other, and a failure in between would
        // lock the person out, or keep two-factor authentication off. So both are changed here, at once, and
        // it does not change the person again: another tab may have changed both meanwhile.
        before: async (_, ctx) => {
          if (ctx?.path !== TOTP_PATH && ctx?.path !== TURN_OFF_PATH) return undefined;
          const { session } = ctx.context;
          if (!session) throw new Error('Two-factor authentication is changed in a session.');
          const { id } = session.user;
          if (ctx.path === TURN_OFF_PATH) {
            await turnOffSecondFactor(database, id);
            security.tell(id, 'second_factor_off');
            return CHANGED_ALREADY;
          }
          // Its own session ends too, and is replaced after this.
          const secret = secretIn(ctx.context);
          if (secret === null || !(await turnOnSecondFactor(database, id, secret))) {
            refuseReplacedSecret();
          }
          security.tell(id, 'second_factor_on');
          return CHANGED_ALREADY;
        },
      },
    },
  };
}

/** Tells the library to change nothing: it leaves out fields that are undefined. */
const CHANGED_ALREADY = { data: { twoFactorEnabled: undefined } };

/** The library answers its own errors, even thrown ones. Here they become errors of ours. */
function throwing(
  handler: (request: Request) => Promise<Response>,
  failures: ReportedFailures,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const response = await failures.throwing(() => handler(request));
    if (response.status >= 400) throw await refusalOf(response);
    return response;
  };
}
