/** How the client names itself in requests. Some firewalls refuse requests without a name. */

/** A test compares it with package.json, which a bundle does not have. */
const VERSION = '0.1.0';

/** A browser has a name of its own, and asks the server first whether it accepts another one. */
const isBrowser = globalThis.navigator?.userAgent?.startsWith('Mozilla/') ?? false;

/** The header; none in a browser. */
export const USER_AGENT = isBrowser ? {} : { 'User-Agent': `farebox-client/${VERSION}` };
