/** The path prefix of better-auth's endpoints. */
export const AUTH_PATH = '/console/auth';

/**
 * Those that the console uses. The library has twice as many, which would change names, link accounts of other services or
 * replace backup codes; no page needs them and no test watches them.
 */
const ENDPOINTS: ReadonlySet<string> = new Set([
  '/get-session',
  '/list-sessions',
  '/passkey/delete-passkey',
  '/passkey/generate-authenticate-options',
  '/passkey/generate-register-options',
  '/passkey/list-user-passkeys',
  '/passkey/verify-authentication',
  '/passkey/verify-registration',
  '/request-password-reset',
  '/reset-password',
  '/revoke-other-sessions',
  '/revoke-session',
  '/sign-in-link',
  '/sign-in/email',
  '/sign-out',
  '/sign-up',
  '/two-factor/disable',
  '/two-factor/enable',
  '/two-factor/verify-backup-code',
  '/two-factor/verify-totp',
]);

/** Takes a path without its query. */
export function isAuthEndpoint(path: string): boolean {
  return path.startsWith(AUTH_PATH) && ENDPOINTS.has(path.slice(AUTH_PATH.length));
}
