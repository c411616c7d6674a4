/**
 * Whom limits by address count together: an IPv4 address, or the 64 bits of an IPv6 address that a provider gives to each
 * customer. Whoever has these may use any of the addresses in them.
 */
import { isIPv6 } from 'node:net';

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** Takes the address of a connection, which is undefined once it is closed. */
export function networkOf(address = ''): string {
  // With a dot, it is an IPv4 address that is written as IPv6.
  if (!isIPv6(address) || address.includes('.')) return address;
  const [before = '', after] = address.split('::');
  const first = groupsOf(before);
  const zeros = after === undefined ? 0 : GROUPS - first.length - groupsOf(after).length;
  const all = [...first, ...Array.from({ length: zeros }, () => '0')];
  return `${all
    .concat(groupsOf(after ?? ''))
    .slice(0, NETWORK_GROUPS)
    .join(':')}::/64`;
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
