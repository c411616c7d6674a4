/** The small pools of the console's sign-in. An error of them says whether a statement can have been sent. */
import { Pool, type PoolClient } from 'pg';
import type { Logger } from 'pino';
import { NotConnectedError } from '../store/failures.ts';
import { withSessionOptions } from '../store/session.ts';

/** `library` also reads sessions. `counts` counts what anybody may send. */
const CONNECTIONS = { library: 3, counts: 2 };
/** For a free connection, and for a new one. A page sends some ten requests at once, and each reads the session. */
const WAIT_MS_MAX = 10_000;
/** A page that is open asks more often than this, so its requests find open connections. */
const IDLE_MS_MAX = 60_000;
/** Longer than the statement timeout, whose error is more precise. Past it the connection is dead. */
const SILENCE_MS_MAX = 6_000;

type Callback = (
  error: Error | undefined,
  client: PoolClient | undefined,
  done: (release?: unknown) => void,
) => void;

/** The driver's own errors do not tell a connection that could not be made from one that was lost. */
export class ConsolePool extends Pool {
  /** As Slonik's pools report it, for the metrics. */
  state() {
    return {
      acquiredConnections: this.totalCount - this.idleCount,
      idleConnections: this.idleCount,
      waitingClients: this.waitingCount,
    };
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<PoolClient> | void {
    if (!callback) {
      return super.connect().catch((error: unknown) => {
        throw notConnected(error);
      });
    }
    super.connect((error, client, done) => callback(error && notConnected(error), client, done));
  }
}

function notConnected(cause: unknown): NotConnectedError {
  return new NotConnectedError('no connection to Postgres', { cause });
}

export function openPool(
  databaseUrl: string,
  log: Logger,
  use: keyof typeof CONNECTIONS,
): ConsolePool {
  const pool = new ConsolePool({
    connectionString: withSessionOptions(databaseUrl, {
      search_path: 'console',
      lock_timeout: 4_000,
      statement_timeout: 5_000,
    }),
    max: CONNECTIONS[use],
    connectionTimeoutMillis: WAIT_MS_MAX,
    idleTimeoutMillis: IDLE_MS_MAX,
    query_timeout: SILENCE_MS_MAX,
  });
  // The library gives a connection back whose answer is overdue, as one that can be used.
  pool.on('release', (_, client) => {
    if (Reflect.get(client, 'readyForQuery') !== true) void client.end();
  });
  pool.on('error', (err) => log.warn({ err }, 'a connection to Postgres broke'));
  return pool;
}
