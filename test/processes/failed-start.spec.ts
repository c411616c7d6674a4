/** A process that cannot start ends, so that its supervisor starts it again. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
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

describe('an API process that waits for Postgres while it starts', () => {
  // Not by the system: that ends no process 1, such as that of a container without an init.
  it('ends by itself on SIGTERM', async () => {
    const cli = join(import.meta.dirname, '../../src/cli.ts');
    const child = spawn(process.execPath, [cli, 'api'], {
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: 'postgres://127.0.0.1:9/farebox',
        TEMPORAL_ADDRESS: '127.0.0.1:9',
        MASTER_SECRET: '0123456789abcdef0123456789abcdef',
        STRIPE_SECRET_KEY: 'sk_test_none',
        STRIPE_WEBHOOK_SECRET: 'whsec_none',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    for await (const chunk of child.stdout) if (/waiting for Postgres/.test(String(chunk))) break;
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });
});
