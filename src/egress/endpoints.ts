/**
 * Whether a URL that somebody gave may be called, as far as the text of it tells. What its name resolves to
 * is checked when it is connected to.
 */
import { isIP } from 'node:net';
import { isPublicAddress } from './addresses.ts';

/** Names that resolve inside a network or a machine, and never on the public internet. */
const PRIVATE_NAME = /(^|\.)(localhost|local|localdomain|internal|intranet|lan|home\.arpa)$/;

export interface EndpointRules {
  /** Loopback and private networks too: for development. */
  readonly allowPrivate: boolean;
}

/** Undefined for a URL that may be called, else what is wrong with it, to go on after "endpoint". */
export function endpointProblem(text: string, { allowPrivate }: EndpointRules): string | undefined {
  const url = URL.parse(text);
  if (!url) return 'must be a URL.';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an http(s) URL.';
  if (url.username || url.password) return 'must not have credentials in it.';
  if (!allowPrivate && !isPublicHost(url.hostname)) return 'must be on a public address.';
  return undefined;
}

/** A host as the URL parser gives it: IPv4 in its one spelling, IPv6 in brackets, names in lower case. */
function isPublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  if (isIP(host)) return isPublicAddress(host);
  return host.includes('.') && !PRIVATE_NAME.test(host);
}
