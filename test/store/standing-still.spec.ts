/** A process that stood still, as on a machine that was paused: what arrived meanwhile is not too late. */
import { Client } from 'pg';
import {
  createDatabase,
  sql,
  type Database,
  type DatabaseOptions,
} from '../../src/store/database.ts';
import { asSuperuser, createTestDatabase, until, type TestDatabase } from '../support/stack.ts';

/** Longer than any limit below. */
const STILL_MS = 6_000;
/** Long enough for a busy machine. */
const LIMIT_MS = STILL_MS - 500;

function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STILL_MS);
}

const sleep = (database: Database) => database.query(sql.typeAlias('nothing')`select pg_sleep(1)`);

describe('a process that stood still', () => {
  let testDatabase: TestDatabase;
  let observer: Client;

  before(async () => {
    testDatabase = await createTestDatabase();
    observer = new Client({ connectionString: asSuperuser(testDatabase.url) });
    await observer.connect();
  });
  after(async () => {
    await observer?.end();
    await testDatabase?.drop();
  });

  async function withDatabase(
    options: Pick<DatabaseOptions, 'silenceMsMax' | 'waitMsMax'>,
    work: (database: Database) => Promise<void>,
  ) {
    const database = await createDatabase(testDatabase.url, {
      maxPoolSize: 1,
      onError: () => {},
      ...options,
    });
    try {
      await work(database);
    } finally {
      await database.end();
    }
  }

  /**
   * Begins a statement that takes a second, and stands still until it is over. On a busy machine it may be over before
   * we see that it has begun: then begins another one.
   */
  async function standStillDuring(database: Database, meanwhile: () => void = () => {}) {
    for (;;) {
      let isOver = false;
      const answer = sleep(database).finally(() => (isOver = true));
      const hasBegun = await until(async () => {
        const { rowCount } = await observer.query(
          `select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
        );
        return isOver ? 'over' : rowCount === 1 && 'begun';
      });
      if (hasBegun === 'begun') {
        meanwhile();
        standStill();
      }
      await answer;
      if (hasBegun === 'begun') return;
    }
  }

  it('takes an answer of PostgreSQL that came in time', () =>
    withDatabase({ silenceMsMax: LIMIT_MS }, (database) => standStillDuring(database)));

  it('uses a connection that PostgreSQL accepted in time', async () => {
    const client = new Client({
      connectionString: testDatabase.url,
      connectionTimeoutMillis: LIMIT_MS,
    });
    const connected = client.connect();
    standStill();
    await connected;
    await client.end();
  });

  it('gives a connection that is free again to the statement that waits for it', () =>
    withDatabase({ waitMsMax: LIMIT_MS }, async (database) => {
      const waiting: Promise<unknown>[] = [];
      await standStillDuring(database, () => void waiting.push(sleep(database)));
      await Promise.all(waiting);
    }));
});
