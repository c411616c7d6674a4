/**
 * Names of hosts that others gave us, resolved by DNS with a time limit. The lookup of the system has none,
 * and Node runs two of them at a time for the whole process: a nameserver that answers slowly would keep
 * Stripe and Temporal from being found.
 */
import { NODATA, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { callbackify } from 'node:util';

/**
 * Limits of the first attempt and of any attempt. Two attempts together take at most half of the time for a
 * connection.
 */
const ATTEMPT_MS = { timeout: 2_000, maxTimeout: 3_000, tries: 2 };

export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Asks these nameservers, by default those of the system. */
export function nameResolver(servers?: readonly string[]): LookupAll {
  const resolver = new Resolver(ATTEMPT_MS);
  if (servers) resolver.setServers(servers);
  const find = callbackify(async (hostname: string): Promise<LookupAddress[]> => {
    const [v4, v6] = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ]);
    const addresses = [
      ...found(v4).map((address) => ({ address, family: 4 })),
      ...found(v6).map((address) => ({ address, family: 6 })),
    ];
    if (addresses.length === 0) throw errorOf(v4);
    return addresses;
  });
  return (hostname, _, done) => find(hostname, done);
}

function found(settled: PromiseSettledResult<string[]>): readonly string[] {
  return settled.status === 'fulfilled' ? settled.value : [];
}

function errorOf(settled: PromiseSettledResult<string[]>): NodeJS.ErrnoException {
  return settled.status === 'rejected' && settled.reason instanceof Error
    ? settled.reason
    : Object.assign(new Error('the name has no address'), { code: NODATA });
}
