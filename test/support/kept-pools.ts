/**
 * One connection to each database for what tests prepare, kept from one call to the next. With a connection
 * for each call, connecting and planning took several times the CPU time of the work.
 */
import { createDatabase, type Database } from '../../src/store/database.ts';

const pools = new Map<string, Promise<Database>>();

export function keptPool(databaseUrl: string): Promise<Database> {
  const kept = pools.get(databaseUrl);
  if (kept) return kept;
  const pool = createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  pools.set(databaseUrl, pool);
  pool.catch(() => pools.delete(databaseUrl));
  return pool;
}

/** Before the database is dropped or copied: nobody may be connected then. */
export async function endKeptPool(databaseUrl: string): Promise<void> {
  const pool = pools.get(databaseUrl);
  pools.delete(databaseUrl);
  await (await pool)?.end();
}
