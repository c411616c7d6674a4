/** A process that cannot start ends, so that its supervisor starts it again, and says which setting is wrong. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startSimulator } from '../support/simulators.ts';
import {
  createTestDatabase,
  farebox,
  ourProgram,
  testEnvironment,
  type TestDatabase,
} from '../support/stack.ts';
import { choosePort } from '../support/ports.ts';

describe('with a TEMPORAL_NAMESPACE that does not exist', () => {
  const ADVICE =
    /Temporal at \S+ has no namespace nowhere\. Correct TEMPORAL_NAMESPACE, or create the namespace/;
  let database: TestDatabase;
  let simulator: Awaited<ReturnType<typeof startSimulator>>;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    database = await createTestDatabase();
    simulator = await startSimulator();
    const found = { ...(await testEnvironment(database)), ...simulator.env };
    env = { ...found, TEMPORAL_NAMESPACE: 'nowhere' };
  });
  after(async () => {
    await simulator?.stop();
    await database?.drop();
  });

  for (const command of ['worker', 'migrate', 'doctor --only temporal', 'reconcile', 'builds']) {
    it(`farebox ${command} ends with an error that names the setting`, async () => {
      await assert.rejects(farebox(command.split(' '), { env }), { stderr: ADVICE });
    });
  }

  it('an API process starts, because charges work, and logs the setting', async () => {
    const child = spawn(process.execPath, [ourProgram(), 'api'], {
      env: { PATH: process.env['PATH'], ...env, PORT: String(await choosePort()) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    let log = '';
    for await (const chunk of child.stdout) {
      log += String(chunk);
      if (ADVICE.test(log) && /the API is listening/.test(log)) break;
    }
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });
});

describe('an API process that waits for Postgres while it starts', () => {
  // Not by the system: that ends no process 1, such as that of a container without an init.
  it('ends by itself on SIGTERM', async () => {
    const child = spawn(process.execPath, [ourProgram(), 'api'], {
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
