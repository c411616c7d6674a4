/**
 * The address of a client, which the limits on sign-in count: of its connection, or as a proxy names it in a
 * header.
 */
import { isIP } from 'node:net';
import { getIP } from 'better-auth/api';

/** We set it on every request, so that clients cannot choose the address that rate limits count. */
export const ADDRESS_HEADER = 'x-farebox-address';

/** Where the library finds the address. */
export const IP_ADDRESS = { ipAddressHeaders: [ADDRESS_HEADER] };

/** The address as the library counts and stores it: of IPv6, the network. */
export function placeOf(from: Request | Headers | undefined): string | undefined {
  return (from && getIP(from, { advanced: { ipAddress: IP_ADDRESS } })) ?? undefined;
}

/**
 * The last address of the list in the header, because a client may have sent those before it. Undefined when
 * the value has none, as when the request did not come through the proxy.
 */
export function addressIn(header: string | readonly string[] | undefined): string | undefined {
  const values = typeof header === 'string' ? header : header?.join();
  const last = values?.split(',').at(-1)?.trim() ?? '';
  return withoutZone(last) ?? withoutZone(withoutPort(last));
}

/** Some proxies add the port of the connection: `203.0.113.5:4711`, `[2001:db8::1]:443`. */
function withoutPort(text: string): string {
  const { v6, v4 } = /^(?:\[(?<v6>[^\]]*)\]|(?<v4>[\d.]+))(?::\d{1,5})?$/.exec(text)?.groups ?? {};
  return v6 ?? v4 ?? '';
}

/** The zone of an IPv6 address names a network interface of the machine that saw it, as in `fe80::1%eth0`. */
function withoutZone(text: string): string | undefined {
  const address = text.replace(/%.*$/, '');
  return isIP(address) === 0 ? undefined : address;
}
