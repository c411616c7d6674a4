/** A database belongs to the processor's test keys or to its live keys: the mode of the first start. */
import assert from 'node:assert/strict';
import { ensureProcessorMode, ProcessorModeError } from '../../src/store/processor-mode.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

describe('the mode of a database', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  beforeEach(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
  });
  afterEach(async () => {
    await database.end();
    await testDatabase.drop();
  });

  for (const isLive of [true, false]) {
    it(`stays ${isLive ? 'live' : 'test'} after the first start`, async () => {
      await ensureProcessorMode(database, isLive);
      await ensureProcessorMode(database, isLive);
      await assert.rejects(ensureProcessorMode(database, !isLive), (error: Error) => {
        assert.ok(error instanceof ProcessorModeError);
        assert.match(error.message, /^STRIPE_SECRET_KEY is a (live|test) key, and this database/);
        return true;
      });
      await ensureProcessorMode(database, isLive);
    });
  }

  for (const command of ['api', 'worker']) {
    it(`refuses the start of ${command} with a key of the other mode`, async () => {
      await ensureProcessorMode(database, false);
      const env = {
        DATABASE_URL: testDatabase.url,
        TEMPORAL_ADDRESS: '127.0.0.1:9',
        MASTER_SECRET: '0123456789abcdef0123456789abcdef',
        STRIPE_SECRET_KEY: 'rk_live_1',
        STRIPE_WEBHOOK_SECRET: 'whsec_1',
      };
      await assert.rejects(farebox([command], { env }), /a live key.*used with test keys/);
    });
  }

  it('is one of two when both start at the same moment', async () => {
    const starts = await Promise.allSettled(
      [true, false].map((isLive) => ensureProcessorMode(database, isLive)),
    );
    assert.deepEqual(starts.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
  });
});
