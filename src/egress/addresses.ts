/**
 * The addresses of the public internet. Calls to URLs that others gave us may go only there. Refused are loopback,
 * private and link-local networks, metadata services, and IPv6 forms with an embedded IPv4 address.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** IANA's special-purpose registry for IPv4, and the addresses that cloud providers use internally. */
const NOT_PUBLIC_IPV4 = [
  '0.0.0.0/8', // this host
  '10.0.0.0/8', // private
  '100.64.0.0/10', // behind a provider's NAT; Alibaba's metadata service
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's platform services
  '169.254.0.0/16', // link-local; most clouds' metadata service
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
];

/** The range assigned for the public internet. Loopback, mapped, NAT64 and local addresses are outside. */
const GLOBAL_IPV6 = '2000::/3';
const NOT_PUBLIC_IPV6 = [
  '2001::/23', // protocol assignments, Teredo among them
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: an IPv4 address inside
  '3fff::/20', // documentation
];

const notPublicIpv4 = blockList('ipv4', NOT_PUBLIC_IPV4);
const globalIpv6 = blockList('ipv6', [GLOBAL_IPV6]);
const notPublicIpv6 = blockList('ipv6', NOT_PUBLIC_IPV6);

/** Takes an IP address as text, without brackets. False for any other text. */
export function isPublicAddress(ip: string): boolean {
  if (isIPv4(ip)) return !notPublicIpv4.check(ip);
  return isIPv6(ip) && globalIpv6.check(ip, 'ipv6') && !notPublicIpv6.check(ip, 'ipv6');
}

function blockList(family: 'ipv4' | 'ipv6', subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
