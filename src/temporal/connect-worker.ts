/**
 * A worker's own connection to Temporal. It goes through a tunnel, unless it has TLS: the tunnel's address is not the
 * name in the server's certificate. A proxy that chooses servers by name may refuse that address as well; then it goes
 * without.
 */
import { NativeConnection } from '@temporalio/worker';
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
  try {
    const connection = await NativeConnection.connect({ ...options, address: tunnel.address });
    await direct.close();
    return { connection, tunnel };
  } catch {
    await tunnel.close();
    return { connection: direct, tunnel: undefined };
  }
}
