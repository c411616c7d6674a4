/** A pool whose connections are all busy: callers wait for a limited time, and learn that nothing happened. */
import assert from 'node:assert/strict';
import { PoolBusyError } from '../../src/store/bounded-pool.ts';
import { createDatabase, readServerState, type Database } from '../../src/store/database.ts';
import { isDatabaseUnavailable } from '../../src/store/failures.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

describe('a bounded pool', () => {
  let testDatabase: TestDatabase;

  before(async () => {
    testDatabase = await createTestDatabase();
  });
  after(async () => {
    await testDatabase?.drop();
  });

  async function withPool(waitMsMax: number, work: (pool: Database) => Promise<void>) {
    const pool = await createDatabase(testDatabase.url, {
      maxPoolSize: 1,
      waitMsMax,
      onError: () => {},
    });
    try {
      await work(pool);
    } finally {
      await pool.end();
    }
  }

  it('refuses a caller that would wait too long', () =>
    withPool(50, async (database) => {
      const held = Promise.withResolvers<void>();
      const holder = database.connect(() => held.promise);
      await assert.rejects(readServerState(database), (error) => {
        assert.ok(error instanceof PoolBusyError);
        return isDatabaseUnavailable(error);
      });
      held.resolve();
      await holder;
    }));

  it('serves a caller that waits as soon as there is room', () =>
    withPool(60_000, async (database) => {
      const held = Promise.withResolvers<void>();
      const holder = database.connect(() => held.promise);
      const waiting = readServerState(database);
      held.resolve();
      await holder;
      assert.equal(await waiting, 'up');
      await assert.rejects(
        database.connect(() => Promise.reject(new Error('broken'))),
        /broken/,
      );
      assert.equal(await readServerState(database), 'up');
    }));
});
