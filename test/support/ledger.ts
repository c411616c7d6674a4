/** A ledger for tests of the store: a separate database at the newest schema, and a pool of connections to it. */
import { createDatabase, type Database } from '../../src/store/database.ts';
import {
  copyTestDatabase,
  createMigratedDatabase,
  createTestDatabase,
  type TestDatabase,
} from './stack.ts';

export interface TestLedger extends TestDatabase {
  readonly database: Database;
}

export async function openTestLedger(maxPoolSize = 10): Promise<TestLedger> {
  return openLedger(await createTestDatabase(), maxPoolSize);
}

/** As migrations leave it: without the partitions of months. */
export async function openMigratedLedger(maxPoolSize: number): Promise<TestLedger> {
  return openLedger(await createMigratedDatabase(), maxPoolSize);
}

/** Pools of connections to the database itself and to a copy of it, which is its backup. Ends the present one. */
export async function backUpLedger(ledger: TestLedger, maxPoolSize = 10): Promise<TestLedger[]> {
  await ledger.database.end();
  const copy = await copyTestDatabase(ledger.url);
  return Promise.all([ledger, copy].map((each) => openLedger(each, maxPoolSize)));
}

async function openLedger(testDatabase: TestDatabase, maxPoolSize: number): Promise<TestLedger> {
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
