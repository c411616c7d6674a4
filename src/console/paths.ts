/** The path prefix of better-auth's endpoints. */
export const AUTH_PATH = '/console/auth';
