/** The origins of our pages. A write authenticated by a cookie must come from one of them. */

/** On this machine `localhost` and 127.0.0.1 are the same service, and people type both. */
export function ownOrigins(baseUrl: string): ReadonlySet<string> {
  const { origin, protocol, hostname, port } = new URL(baseUrl);
  const loopback = ['localhost', '127.0.0.1', '[::1]'];
  if (!loopback.includes(hostname)) return new Set([origin]);
  const suffix = port === '' ? '' : `:${port}`;
  return new Set(loopback.map((host) => `${protocol}//${host}${suffix}`));
}
