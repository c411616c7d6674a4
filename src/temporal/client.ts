/**
 * The connection to Temporal. The API starts and serves while Temporal is down: it connects at the first call, and a
 * call fails within seconds if Temporal cannot be reached.
 */
import { Client, Connection } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { Config } from '../config.ts';
import { createGrpcRetries } from './grpc-retries.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { dataConverterOf } from './payload-codec.ts';
import { tracedStarts } from './traced-starts.ts';

export interface TemporalClient {
  /** The present one: `renew` replaces it. */
  readonly client: Client;
  readonly taskQueue: string;
  /** Whether the server responds within `timeoutMs`. The default of a second is enough for an open connection. */
  isUp(timeoutMs?: number): Promise<boolean>;
  /**
   * Continues on a new connection if the server responds on it. False: it does not. Calls in flight stay on
   * the old one.
   */
  renew(): Promise<boolean>;
  close(): Promise<void>;
}

/** Anything that names a deployment: its task queue does. */
export type Deployed = Pick<TemporalClient, 'taskQueue'>;

/** About 1.5 seconds of attempts: enough for a server that restarts, without waiting for one that is down. */
const CALL_ATTEMPTS_MAX = 5;
const PROBE_TIMEOUT_MS = 1_000;
/** For a process that has just started: connecting takes seconds on a busy machine. A refused connection ends sooner. */
export const CONNECT_TIMEOUT_MS = 30_000;
/** For a new connection, which may go far and use TLS. */
const RENEWED_WITHIN_MS = 5_000;

/** `tracing` of a process that makes traces. */
export function createTemporalClient(
  config: Config['temporal'],
  tracing?: Tracing,
): TemporalClient {
  let current = openClient(config, tracing);
  let isClosed = false;
  return {
    get client() {
      return current.client;
    },
    taskQueue: config.taskQueue,
    isUp: (timeoutMs = PROBE_TIMEOUT_MS) => isUp(current.client, timeoutMs),
    renew: async () => {
      const next = openClient(config, tracing);
      const isBetter = (await isUp(next.client, RENEWED_WITHIN_MS)) && !isClosed;
      const other = isBetter ? current : next;
      if (isBetter) current = next;
      await other.close();
      return isBetter;
    },
    close: async () => {
      isClosed = true;
      await current.close();
    },
  };
}

/** Whether Temporal answers on this connection in time. */
export function isUp(line: Client | NativeConnection, timeoutMs: number): Promise<boolean> {
  return line
    .withDeadline(Date.now() + timeoutMs, () => line.workflowService.getSystemInfo({}))
    .then(
      () => true,
      () => false,
    );
}

/** On a connection of its own, which opens at the first call. */
function openClient(config: Config['temporal'], tracing: Tracing | undefined) {
  const retries = createGrpcRetries(CALL_ATTEMPTS_MAX);
  const connection = Connection.lazy({
    ...connectionOptions(config),
    connectTimeout: 3_000,
    channelArgs: {
      // By default a channel that could not connect waits up to two minutes before it retries.
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 2_000,
      // By default all clients of one address share a connection.
      'grpc.use_local_subchannel_pool': 1,
    },
    interceptors: [retries.interceptor],
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
    close: async () => {
      unfollow();
      retries.end();
      await connection.close();
    },
  };
}

/** How to connect now, for clients and workers alike. */
export function connectionOptions(config: Config['temporal']) {
  const { address, tls, metadata, readApiKey } = config;
  const apiKey = (readApiKey && readable(readApiKey)) ?? config.apiKey;
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
