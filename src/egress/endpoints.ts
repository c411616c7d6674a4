/**
 * Checks the text of a URL that somebody gave us. The addresses behind its name are checked when a connection is made.
 */
import { isIP } from 'node:net';
import { isPublicAddress } from './addresses.ts';

/** Names that resolve only inside a network or a machine. */
const PRIVATE_NAME = /(^|\.)(localhost|local|localdomain|internal|intranet|lan|home\.arpa)$/;

export interface EndpointRules {
  /** Allows loopback and private networks: for development. */
  readonly allowPrivate: boolean;
}

/** Undefined for a URL that may be called, else the problem, worded to follow "endpoint". */
export function endpointProblem(text: string, { allowPrivate }: EndpointRules): string | undefined {
  const url = URL.parse(text);
  if (!url) return 'must be a URL.';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an http(s) URL.';
  if (url.username || url.password) return 'must not have credentials in it.';
  if (!allowPrivate && !isPublicHost(url.hostname)) return 'must be on a public address.';
  return undefined;
}

/** Undefined for a URL that events may be sent to, else the problem, worded to follow "url". */
export function webhookProblem(text: string, { allowPrivate }: EndpointRules): string | undefined {
  const problem = endpointProblem(text, { allowPrivate });
  if (problem) return problem;
  const { protocol, hostname } = new URL(text);
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
  return protocol === 'https:' || (allowPrivate && isLoopback)
    ? undefined
    : 'must be an https URL.';
}

/** A host as the URL parser returns it: IPv4 in canonical form, IPv6 in brackets, names in lower case. */
function isPublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.+$/g, '');
  if (isIP(host)) return isPublicAddress(host);
  return host.includes('.') && !PRIVATE_NAME.test(host);
}
