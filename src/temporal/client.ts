/**
 * The connection to Temporal. The API starts and serves while Temporal is down: it connects at the first call, and a
 * call fails within seconds if Temporal cannot be reached.
 */
import { Client, Connection, makeGrpcRetryInterceptor } from '@temporalio/client';
import type { Config } from '../config.ts';
import { createGrpcRetries } from './grpc-retries.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { dataConverterOf } from './payload-codec.ts';
import { tracedStarts } from './traced-starts.ts';

export interface TemporalClient {
  readonly client: Client;
  readonly taskQueue: string;
  /** Whether the server responds within `timeoutMs`. The default of a second is enough for an open connection. */
  isUp(timeoutMs?: number): Promise<boolean>;
  close(): Promise<void>;
}

/** Anything that names a deployment: its task queue does. */
export type Deployed = Pick<TemporalClient, 'taskQueue'>;

/** About 1.5 seconds of attempts: enough for a server that restarts, without waiting for one that is down. */
const CALL_ATTEMPTS_MAX = 5;
const PROBE_TIMEOUT_MS = 1_000;

/** `tracing` of a process that makes traces. */
export function createTemporalClient(
  config: Config['temporal'],
  tracing?: Tracing,
): TemporalClient {
  const retries = createGrpcRetries(CALL_ATTEMPTS_MAX);
  const connection = Connection.lazy({
    ...connectionOptions(config),
    connectTimeout: 3_000,
    channelArgs: {
      // By default a channel that could not connect waits up to two minutes before it retries.
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 2_000,
    },
    interceptors: [makeGrpcRetryInterceptor(retries)],
  });
  const unfollow = followApiKey(connection, config);
  const { namespace, payloadKeys } = config;
  const dataConverter = dataConverterOf(payloadKeys);
  const client = new Client({
    connection,
    namespace,
    ...(dataConverter && { dataConverter }),
    ...(tracing && { interceptors: { workflow: [tracedStarts(tracing)] } }),
  });
  return {
    client,
    taskQueue: config.taskQueue,
    isUp: (timeoutMs = PROBE_TIMEOUT_MS) =>
      connection
        .withDeadline(Date.now() + timeoutMs, () => client.workflowService.getSystemInfo({}))
        .then(
          () => true,
          () => false,
        ),
    close: async () => {
      unfollow();
      await retries.end();
      await connection.close();
    },
  };
}

/** How to connect, for clients and workers alike. */
export function connectionOptions({ address, tls, metadata, apiKey }: Config['temporal']) {
  return { address, tls, metadata, ...(apiKey !== undefined && { apiKey }) };
}

const KEY_READ_EVERY_MS = 60_000;

/** Follows the API key in its file as it rotates. Call the result before the connection is closed. */
export function followApiKey(
  connection: { setApiKey(key: string): unknown },
  { readApiKey }: Config['temporal'],
): () => void {
  if (!readApiKey) return () => {};
  const timer = setInterval(() => {
    const apiKey = readable(readApiKey);
    if (apiKey !== undefined) void connection.setApiKey(apiKey);
  }, KEY_READ_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** Undefined while the file is being replaced: the next look finds it. */
function readable(readApiKey: () => string | undefined): string | undefined {
  try {
    return readApiKey();
  } catch {
    return undefined;
  }
}
