/**
 * Connections to public addresses only. The address is checked where the connection is made: before it when
 * the host is an address, among all that its name resolves to, and once more of the socket that came about.
 * So a name that resolves to another address a moment later gains nothing.
 */
import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from './addresses.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** Nothing was sent: the address is not one of the public internet. */
export class EgressDeniedError extends Error {
  override readonly name = 'EgressDeniedError';

  constructor(address: string) {
    super(`${address} is not a public address`);
  }
}

export interface ConnectorOptions {
  readonly allowPrivate: boolean;
  /** How names become addresses: the system's way. */
  readonly resolve?: LookupAll;
}

export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export function createConnector({ allowPrivate, resolve = lookup }: ConnectorOptions) {
  const options = { timeout: CONNECT_TIMEOUT_MS, allowH2: false };
  return allowPrivate ? buildConnector(options) : publicOnly(options, resolve);
}

function publicOnly(
  options: buildConnector.BuildOptions,
  resolve: LookupAll,
): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: lookupPublic(resolve) });
  return (target, done) => {
    const host = target.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) && !isPublicAddress(host)) {
      done(new EgressDeniedError(host), null);
      return;
    }
    connect(target, (error, socket) => {
      const address = socket?.remoteAddress ?? '';
      if (socket && !isPublicAddress(address)) {
        socket.destroy();
        done(new EgressDeniedError(address), null);
      } else if (socket) done(null, socket);
      else done(error ?? new Error('no connection'), null);
    });
  };
}

/** A name with a single address that is not public is refused as a whole. */
function lookupPublic(resolve: LookupAll): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const denied = addresses.find(({ address }) => !isPublicAddress(address));
      if (denied) return done(new EgressDeniedError(denied.address), '');
      if (options.all) return done(null, addresses);
      const [first] = addresses;
      done(null, first?.address ?? '', first?.family);
    });
  };
}
