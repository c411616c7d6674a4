/** A ledger for tests of the store: a separate database at the newest schema, and a pool of connections to it. */
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from './stack.ts';

export interface TestLedger extends TestDatabase {
  readonly database: Database;
}

export async function openTestLedger(maxPoolSize = 10): Promise<TestLedger> {
  const testDatabase = await createTestDatabase();
  const { url } = testDatabase;
  const database = await createDatabase(url, { maxPoolSize, onError: () => {} });
  return {
    url,
    database,
    drop: async () => {
      await database.end();
      await testDatabase.drop();
    },
  };
}
