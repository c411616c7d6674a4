/** The origins of our pages. A write authenticated by a cookie must come from one of them. */

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

export function isLoopback(hostname: string): boolean {
  return LOOPBACK.includes(hostname);
}

/** On this machine `localhost` and 127.0.0.1 are the same service, and people type both. */
export function ownOrigins(consoleUrl: string): ReadonlySet<string> {
  const { origin, protocol, hostname, port } = new URL(consoleUrl);
  if (!isLoopback(hostname)) return new Set([origin]);
  const suffix = port === '' ? '' : `:${port}`;
  return new Set(LOOPBACK.map((host) => `${protocol}//${host}${suffix}`));
}
