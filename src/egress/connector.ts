/**
 * Connections to public addresses only. The address is checked where the connection is made: before it when
 * the host is an address, among all that its name resolves to, and once more of the socket that came about.
 * So a name that resolves to another address a moment later gains nothing.
 */
import { lookup } from 'node:dns';
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

export function createConnector({ allowPrivate }: { readonly allowPrivate: boolean }) {
  const options = { timeout: CONNECT_TIMEOUT_MS, allowH2: false };
  return allowPrivate ? buildConnector(options) : publicOnly(options);
}

function publicOnly(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: lookupPublic });
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
const lookupPublic: LookupFunction = (hostname, options, done) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return done(error, '');
    const denied = addresses.find(({ address }) => !isPublicAddress(address));
    if (denied) return done(new EgressDeniedError(denied.address), '');
    if (options.all) return done(null, addresses);
    const [first] = addresses;
    done(null, first?.address ?? '', first?.family);
  });
};
