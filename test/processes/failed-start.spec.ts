/** A process that cannot start ends, so that its supervisor starts it again. */
import assert from 'node:assert/strict';
import {
  createTestDatabase,
  startSimulator,
  startWorkerProcess,
  testEnvironment,
} from '../support/stack.ts';

describe('a worker that fails while it starts', () => {
  it('ends with an error, though it is connected to Temporal', async () => {
    const database = await createTestDatabase();
    const simulator = await startSimulator();
    try {
      const env = { ...(await testEnvironment(database)), ...simulator.env };
      const failed = startWorkerProcess({ env: { ...env, TEMPORAL_NAMESPACE: 'nowhere' } });
      await assert.rejects(failed, /exit code 1/);
    } finally {
      await simulator.stop();
      await database.drop();
    }
  });
});
