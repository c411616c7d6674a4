/** The checks of doctor leave the other cores to charges, and shared memory alone. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { createDatabase, sql } from '../../../src/store/database.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { createTestDatabase, until, type TestDatabase } from '../../support/stack.ts';

describe('the checks of doctor', () => {
  let testDatabase: TestDatabase;
  let client: Client;

  before(async () => {
    testDatabase = await createTestDatabase();
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await testDatabase?.drop();
  });

  it('start no parallel workers', async () => {
    const database = await createDatabase(testDatabase.url, { maxPoolSize: 1, onError: () => {} });
    // Its only session takes workers for the smallest table.
    for (const setting of [
      'parallel_setup_cost',
      'parallel_tuple_cost',
      'min_parallel_table_scan_size',
    ]) {
      await database.query(sql.typeAlias('nothing')`select set_config(${setting}, '0', false)`);
    }
    await examineLedger(database, { parts: ['balances', 'holds', 'charges', 'earnings'] });
    await database.end();
    // A session counts its workers, at the latest, before it is gone.
    await until(async () => {
      const { rows } = await client.query(
        `select from pg_stat_activity
         where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
      );
      return rows.length === 0;
    });
    const { rows } = await client.query(
      'select parallel_workers_to_launch::int as workers from pg_stat_database where datname = current_database()',
    );
    assert.deepEqual(rows, [{ workers: 0 }]);
  });
});
