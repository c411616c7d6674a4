/**
 * Brings the database to the schema of this release: the numbered files of migrations/, forward only,
 * each in order and once, all in one transaction, however many processes try at once.
 */
import { readdir } from 'node:fs/promises';
import { runner } from 'node-pg-migrate';
import { Client } from 'pg';
import type { Logger } from 'pino';

const DIRECTORY = new URL('../../migrations', import.meta.url).pathname;
const TABLE = 'migrations';
const SCHEMA = 'farebox';
/** A migration that cannot get its locks gives up and can be run again; it must not queue behind traffic. */
const LOCK_TIMEOUT_MS = 10_000;

/** The database was written by a newer release; running this one on it would corrupt it. */
export class NewerDatabaseError extends Error {
  override readonly name = 'NewerDatabaseError';
}

/** Returns the names of the migrations that were applied now. */
export async function migrate(databaseUrl: string, log: Logger): Promise<string[]> {
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    await refuseNewer(client);
    await client.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const applied = await runner({
      dbClient: client,
      dir: DIRECTORY,
      direction: 'up',
      migrationsTable: TABLE,
      migrationsSchema: SCHEMA,
      createMigrationsSchema: true,
      advisoryLockMode: 'wait',
      singleTransaction: true,
      checkOrder: true,
      verbose: false,
      logger: {
        debug: (message) => log.debug(message),
        info: (message) => log.debug(message),
        warn: (message) => log.warn(message),
        error: (message) => log.error(message),
      },
    });
    return applied.map(({ name }) => name);
  } finally {
    await client.end();
  }
}

async function refuseNewer(client: Client): Promise<void> {
  const known = new Set((await readdir(DIRECTORY)).map((file) => file.replace(/\.sql$/, '')));
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('${SCHEMA}.${TABLE}') is not null as exists`,
  );
  if (rows[0]?.exists !== true) return;
  const applied = await client.query<{ name: string }>(
    `select name from ${SCHEMA}.${TABLE} order by id`,
  );
  const unknown = applied.rows.map(({ name }) => name).filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new NewerDatabaseError(
      `The database has migrations that this release does not know (${unknown.join(', ')}): it was ` +
        'written by a newer Farebox. Run that release or a later one; this one would damage the data.',
    );
  }
}
