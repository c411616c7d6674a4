/**
 * Limits by address count an IPv4 address, or an IPv6 network: its first 64 bits, which a provider gives to
 * each customer with all addresses in it.
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
