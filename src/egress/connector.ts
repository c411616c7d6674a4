/**
 * Connections to public addresses only. Addresses are checked when the connection is made: the host itself when it is
 * an address, otherwise every address that its name resolves to, and finally the address of the connected socket. So a
 * name that resolves to another address a moment later (DNS rebinding) gains nothing.
 */
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from './addresses.ts';
import { nameResolver, type LookupAll } from './resolve-names.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** The address is not public. Nothing was sent. */
export class EgressDeniedError extends Error {
  override readonly name = 'EgressDeniedError';

  /** The host as the URL has it. What it resolves to here is for us to know: the owner of the URL may be no friend. */
  constructor(host: string) {
    super(`${host} is not at a public address`);
  }
}

export interface ConnectorOptions {
  readonly allowPrivate: boolean;
  /** Resolves names by DNS. */
  readonly resolve?: LookupAll;
}

export function createConnector({ allowPrivate, resolve }: ConnectorOptions) {
  const options = { timeout: CONNECT_TIMEOUT_MS, allowH2: false };
  return allowPrivate ? buildConnector(options) : publicOnly(options, resolve ?? nameResolver());
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
      // A second lock, should the driver ever connect to an address that was not looked up above.
      const address = socket?.remoteAddress ?? '';
      if (socket && !isPublicAddress(address)) {
        socket.destroy();
        done(new EgressDeniedError(host), null);
      } else if (socket) done(null, socket);
      else done(error ?? new Error('no connection'), null);
    });
  };
}

/** One address that is not public makes the whole name refused. */
function lookupPublic(resolve: LookupAll): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const isDenied = addresses.some(({ address }) => !isPublicAddress(address));
      if (isDenied) return done(new EgressDeniedError(hostname), '');
      if (options.all) return done(null, addresses);
      const [first] = addresses;
      done(null, first?.address ?? '', first?.family);
    });
  };
}
