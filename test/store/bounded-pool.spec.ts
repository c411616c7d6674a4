/** A pool whose connections are all busy: callers wait for a limited time, and learn that nothing happened. */
import assert from 'node:assert/strict';
import { PoolBusyError } from '../../src/store/bounded-pool.ts';
import { createDatabase, readServerState, type Database } from '../../src/store/database.ts';
import { isDatabaseUnavailable } from '../../src/store/failures.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

describe('a bounded pool', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  before(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, {
      maxPoolSize: 1,
      waitMsMax: 50,
      onError: () => {},
    });
  });
  after(async () => {
    await database?.end();
    await testDatabase?.drop();
  });

  it('refuses a caller that would wait too long, and serves the next one when there is room', async () => {
    const held = Promise.withResolvers<void>();
    const holder = database.connect(() => held.promise);
    await assert.rejects(readServerState(database), (error) => {
      assert.ok(error instanceof PoolBusyError);
      return isDatabaseUnavailable(error);
    });
    const waiting = readServerState(database);
    held.resolve();
    await holder;
    assert.equal(await waiting, 'up');
    await assert.rejects(
      database.connect(() => Promise.reject(new Error('broken'))),
      /broken/,
    );
    assert.equal(await readServerState(database), 'up');
  });
});
