/** A process that stood still, as on a machine that was paused: what arrived meanwhile is not too late. */
import { Client } from 'pg';
import {
  createDatabase,
  sql,
  type Database,
  type DatabaseOptions,
} from '../../src/store/database.ts';
import { asSuperuser, createTestDatabase, until, type TestDatabase } from '../support/stack.ts';

/** Longer than any wait below. */
const STILL_MS = 1_500;

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

  const untilAsleep = () =>
    until(async () => {
      const { rowCount } = await observer.query(
        `select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
      );
      return rowCount === 1;
    });

  it('takes an answer of PostgreSQL that came in time', () =>
    withDatabase({ silenceMsMax: 1_400 }, async (database) => {
      const answer = sleep(database);
      await untilAsleep();
      standStill();
      await answer;
    }));

  it('gives a connection that is free again to the statement that waits for it', () =>
    withDatabase({ waitMsMax: 1_400 }, async (database) => {
      const first = sleep(database);
      await untilAsleep();
      const second = sleep(database);
      standStill();
      await Promise.all([first, second]);
    }));
});
