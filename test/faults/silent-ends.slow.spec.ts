/**
 * A process whose lines say nothing, as after a failover: it continues on new ones, and ends when it is told
 * to stop.
 */
import assert from 'node:assert/strict';
import { createTestAccount } from '../support/accounts.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';
import {
  createTestDatabase,
  startApiProcess,
  startWorkerProcess,
  testEnvironment,
  until,
  type Environment,
  type ServerProcess,
  type TestDatabase,
} from '../support/stack.ts';

describe('a process on silent lines', () => {
  let database: TestDatabase;
  let env: Environment;
  let line: FaultyLine;
  let child: ServerProcess;

  before(async () => {
    database = await createTestDatabase();
    env = {
      ...(await testEnvironment(database)),
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
    };
  });
  afterEach(async () => {
    await child?.stop();
    await line?.stop();
  });
  after(() => database?.drop());

  const startLine = async (address: string) => {
    const { hostname, port } = new URL(address);
    line = await startFaultyLine({ host: hostname, port: Number(port) });
    return line;
  };
  const lineToPostgres = async () => {
    const url = new URL(database.url);
    url.port = String((await startLine(database.url)).port);
    return url.href;
  };

  describe('an API with a session of the console', () => {
    let session: () => Promise<number>;

    beforeEach(async () => {
      const { email } = await createTestAccount(database.url, 0);
      child = await startApiProcess({
        // Nothing listens at the address of Temporal.
        env: { ...env, DATABASE_URL: await lineToPostgres(), TEMPORAL_ADDRESS: '127.0.0.1:9' },
      });
      const cookie = await signIn(child, database.url, email);
      session = async () =>
        (await call(child, 'GET', '/v1/session', { headers: { cookie } })).status;
      assert.equal(await session(), 200);
    });

    it('answers again after its connections were forgotten', async () => {
      line.forget();
      const statuses = new Set<number>();
      await until(async () => {
        const status = await session();
        statuses.add(status);
        return status === 200;
      });
      assert.deepEqual([...statuses], [503, 200]);
    });

    it('ends while Postgres is silent', async () => {
      line.damage({ kind: 'silent' });
      const unanswered = session().catch(() => {});
      await until(async () => (await call(child, 'GET', '/readyz')).status === 503);
      child.kill('SIGTERM');
      await unanswered;
      assert.equal(await child.exited, 'exit code 0');
    });
  });

  it('ends while Postgres is silent, a worker too', async () => {
    child = await startWorkerProcess({
      env: { ...env, DATABASE_URL: await lineToPostgres() },
    });
    line.damage({ kind: 'silent' });
    child.kill('SIGTERM');
    assert.equal(await child.exited, 'exit code 0');
  });

  it('ends while Temporal is silent, a worker', async () => {
    const { port } = await startLine(`http://${env['TEMPORAL_ADDRESS']}`);
    child = await startWorkerProcess({
      // It gives Temporal up after half a minute: later on a busy machine, and the usual limit is 43 seconds.
      env: { ...env, TEMPORAL_ADDRESS: `127.0.0.1:${port}`, AGENT_GRACE_MS: '150000' },
    });
    line.damage({ kind: 'silent' });
    child.kill('SIGTERM');
    assert.equal(await child.exited, 'exit code 0');
  });
});
