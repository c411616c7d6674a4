/** The limits of a client address count what came from it within a minute. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';
import { until } from '../support/stack.ts';

describe('the limit of a client address', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ env: { CLIENT_ADDRESS_HEADER: 'X-Client' } });
  });
  after(() => api?.stop());
  beforeEach(() => api.sql.query('delete from console.rate_limits'));

  const tryAs = (email: string) =>
    call(api, 'POST', '/console/auth/sign-in/email', {
      body: { email, password: 'wrong password' },
      headers: { origin: api.url },
    });
  const pass = (seconds: number) =>
    api.sql.query('update console.rate_limits set last_request = last_request - $1', [
      seconds * 1_000,
    ]);

  it('refuses nobody in an office where somebody signs in every 50 seconds', async () => {
    for (let n = 0; n < 15; n += 1) {
      assert.equal((await tryAs(`colleague-${n}@example.com`)).status, 401, String(n));
      await pass(50);
    }
  });

  it('is over a minute after the first attempt, also for a client that does not stop', async () => {
    for (let n = 0; n < 10; n += 1) assert.equal((await tryAs(`one-${n}@example.com`)).status, 401);
    // As if all had been 40 seconds ago, even on a machine that took longer than 20 seconds for them.
    await api.sql.query(
      'update console.rate_limits set last_request = floor(extract(epoch from now()) * 1000) - 40000',
    );
    const refused = await tryAs('one@example.com');
    assert.equal(refused.status, 429);
    const wait = Number(refused.headers.get('retry-after'));
    assert.ok(wait > 0 && wait <= 20, String(wait));
    await pass(20);
    // A refusal is remembered for a second.
    await until(async () => (await tryAs('one@example.com')).status === 401);
  });

  it('lets ten of twenty concurrent attempts through', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => tryAs(`at-once-${n}@example.com`)),
    );
    assert.equal(answers.filter(({ status }) => status === 401).length, 10);
  });

  it('keeps no session waiting, nor other addresses, while the requests of one address cannot be counted', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    const signUp = (client: string) =>
      call(api, 'POST', '/console/auth/sign-up', {
        body: { email: 'somebody@example.com' },
        headers: { origin: api.url, 'x-client': client },
      });
    assert.equal((await signUp('203.0.113.1')).status, 200);
    await api.sql.query('begin');
    await api.sql.query(
      `select from console.rate_limits where key like '203.0.113.1|%' for update`,
    );
    const waiting = Promise.all(Array.from({ length: 20 }, () => signUp('203.0.113.1')));
    await until(async () => (await api.waitingBackend()) !== undefined);
    try {
      const session = await call(api, 'GET', '/v1/session', { headers: { cookie } });
      assert.equal(session.status, 200, JSON.stringify(session.body));
      assert.equal((await signUp('203.0.113.2')).status, 200);
    } finally {
      await api.sql.query('rollback');
      await waiting;
    }
  });

  it('leaves no rows of addresses that are gone', async () => {
    await tryAs('gone@example.com');
    await api.sql.query(`update console.rate_limits set key = 'gone' || key`);
    await pass(7_200);
    await tryAs('here@example.com');
    const { rows } = await api.sql.query('select key from console.rate_limits');
    assert.equal(rows.length, 1);
  });
});
