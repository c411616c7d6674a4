/**
 * A process whose lines say nothing, as after a failover: it continues on new ones, and ends when it is told
 * to stop.
 */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';
import {
  startApiProcess,
  startStack,
  startWorkerProcess,
  until,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';

describe('a process on silent lines', () => {
  let api: TestApi;
  let stack: Stack;
  let line: FaultyLine;
  let child: ServerProcess;

  before(async () => {
    [api, stack] = await Promise.all([startTestApi(), startStack()]);
  });
  afterEach(async () => {
    await child?.stop();
    await line?.stop();
  });
  after(async () => {
    await api?.stop();
    await stack?.stop();
  });

  const startLine = async (address: string) => {
    const { hostname, port } = new URL(address);
    line = await startFaultyLine({ host: hostname, port: Number(port) });
    return line;
  };
  const lineToPostgres = async (databaseUrl: string) => {
    const url = new URL(databaseUrl);
    url.port = String((await startLine(databaseUrl)).port);
    return url.href;
  };

  describe('an API with a session of the console', () => {
    let session: () => Promise<number>;

    beforeEach(async () => {
      const { email } = await api.createAccount(0);
      child = await startApiProcess({
        env: { ...api.env, DATABASE_URL: await lineToPostgres(api.databaseUrl) },
      });
      const cookie = await signIn(child, api.databaseUrl, email);
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
      env: { ...stack.env, DATABASE_URL: await lineToPostgres(stack.env['DATABASE_URL'] ?? '') },
    });
    line.damage({ kind: 'silent' });
    child.kill('SIGTERM');
    assert.equal(await child.exited, 'exit code 0');
  });

  it('ends while Temporal is silent, a worker', async () => {
    const { port } = await startLine(`http://${stack.env['TEMPORAL_ADDRESS']}`);
    child = await startWorkerProcess({
      // It gives Temporal up after half a minute: later on a busy machine, and the usual limit is 43 seconds.
      env: { ...stack.env, TEMPORAL_ADDRESS: `127.0.0.1:${port}`, AGENT_GRACE_MS: '150000' },
    });
    line.damage({ kind: 'silent' });
    child.kill('SIGTERM');
    assert.equal(await child.exited, 'exit code 0');
  });
});
