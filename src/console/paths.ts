/** Where requests to better-auth go; what lies below is better-auth's. */
export const AUTH_PATH = '/console/auth';
