/**
 * A worker's own connection to Temporal. It goes through a tunnel, unless it has TLS: the tunnel's address is not the
 * name in the server's certificate. A proxy that chooses servers by name may refuse that address as well; then it goes
 * without.
 */
import { NativeConnection, type NativeConnectionOptions } from '@temporalio/worker';
import type { Config } from '../config.ts';
import { connectionOptions } from './client.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';

export interface WorkerConnection {
  readonly connection: NativeConnection;
  /** Which carries it. Without one, it cannot be cut. */
  readonly tunnel: Tunnel | undefined;
}

/** Rejects when Temporal cannot be reached. */
export async function connectWorker(config: Config['temporal']): Promise<WorkerConnection> {
  const options = connectionOptions(config);
  const direct = await NativeConnection.connect(options);
  if (config.tls || options.apiKey !== undefined) return { connection: direct, tunnel: undefined };
  const tunnel = await openTunnel(config.address);
  const through = await connectThrough(tunnel.address, options);
  const unused = through ? direct : tunnel;
  await unused.close();
  return through ? { connection: through, tunnel } : { connection: direct, tunnel: undefined };
}

/** Undefined if Temporal does not answer there. */
async function connectThrough(
  address: string,
  options: NativeConnectionOptions,
): Promise<NativeConnection | undefined> {
  const connection = await NativeConnection.connect({ ...options, address }).catch(() => undefined);
  try {
    // To connect, the SDK is content with a 404, for the sake of old servers.
    await connection?.workflowService.getSystemInfo({});
    return connection;
  } catch {
    await connection?.close();
    return undefined;
  }
}
