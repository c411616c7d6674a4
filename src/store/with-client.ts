/**
 * A connection of its own, outside of any pool, for work that sets the state of its session or holds a lock
 * for long.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';

const CONNECT_MS_MAX = 5_000;
/** A silent server does not let a connection end. */
const END_MS_MAX = 1_000;

/**
 * Closes the connection when `work` has ended. A statement that takes longer than `statementMsMax` fails, because the
 * server is silent; unlimited when not set.
 */
export async function withClient<T>(
  connectionString: string,
  { statementMsMax }: { readonly statementMsMax?: number },
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({
    connectionString,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    ...(statementMsMax !== undefined && { query_timeout: statementMsMax }),
  });
  // A connection that breaks fails its query too.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    const ended = client.end().catch(() => {});
    await Promise.race([ended, delay(END_MS_MAX, undefined, { ref: false })]);
  }
}
