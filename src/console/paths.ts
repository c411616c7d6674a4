/** The path prefix of better-auth's endpoints. */
export const AUTH_PATH = '/console/auth';

/** The endpoint that a link signs in by, and the page behind the link, whose form it takes. */
export const SIGN_IN_LINK_PATH = `${AUTH_PATH}/sign-in-link`;

/**
 * The endpoints that the console uses. The library has twice as many, which would change names, link accounts
 * of other services or replace backup codes; no page needs them and no test watches them.
 */
const ENDPOINTS: ReadonlyMap<string, 'GET' | 'POST'> = new Map([
  ['/get-session', 'GET'],
  ['/list-sessions', 'GET'],
  ['/passkey/delete-passkey', 'POST'],
  ['/passkey/generate-authenticate-options', 'GET'],
  ['/passkey/generate-register-options', 'GET'],
  ['/passkey/list-user-passkeys', 'GET'],
  ['/passkey/verify-authentication', 'POST'],
  ['/passkey/verify-registration', 'POST'],
  ['/request-password-reset', 'POST'],
  ['/reset-password', 'POST'],
  ['/revoke-other-sessions', 'POST'],
  ['/revoke-session', 'POST'],
  ['/sign-in/email', 'POST'],
  ['/sign-out', 'POST'],
  ['/sign-up', 'POST'],
  ['/two-factor/disable', 'POST'],
  ['/two-factor/enable', 'POST'],
  ['/two-factor/verify-backup-code', 'POST'],
  ['/two-factor/verify-totp', 'POST'],
]);

/** The method of the endpoint at a path without its query; undefined if there is none. */
export function authMethodOf(path: string): 'GET' | 'POST' | undefined {
  return path.startsWith(AUTH_PATH) ? ENDPOINTS.get(path.slice(AUTH_PATH.length)) : undefined;
}
