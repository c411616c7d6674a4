/** The sign-in library hides some failures of the database. People are told of them. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';

describe('the console, while the database fails', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());
  beforeEach(() => api.sql.query('delete from console.rate_limits'));

  const auth = (path: string, body: object, cookie: string) =>
    call(api, 'POST', `/console/auth${path}`, { body, headers: { origin: api.url, cookie } });
  const sessionOf = async (cookie: string) =>
    (await call(api, 'GET', '/v1/session', { headers: { cookie } })).status;
  const whileHeld = async <T>(statement: string, work: () => Promise<T>): Promise<T> => {
    await api.sql.query('begin');
    await api.sql.query(statement);
    try {
      return await work();
    } finally {
      await api.sql.query('rollback');
    }
  };
  const newSession = async () => {
    const { email } = await api.createAccount(0);
    return signIn(api, api.databaseUrl, email);
  };

  for (const statement of [
    'select from console.sessions for update',
    'lock table console.sessions in access exclusive mode',
  ]) {
    it(`says that nobody was signed out, and keeps the cookie: ${statement}`, async () => {
      const cookie = await newSession();
      const failed = await whileHeld(statement, () => auth('/sign-out', {}, cookie));
      assertError(failed, 503, 'service_unavailable');
      assert.deepEqual(failed.headers.getSetCookie(), []);
      assert.equal(await sessionOf(cookie), 200);
      const ended = await auth('/sign-out', {}, cookie);
      assert.equal(ended.status, 200);
      assert.match(ended.headers.getSetCookie().join(), /session_token=;/);
      assert.equal(await sessionOf(cookie), 401);
    }).timeout(30_000);
  }

  it('does not say that a session has ended when it cannot be read', async () => {
    const cookie = await newSession();
    const statement = 'lock table console.sessions in access exclusive mode';
    const answers = await whileHeld(statement, async () => [
      await auth('/revoke-other-sessions', {}, cookie),
      await call(api, 'GET', '/console/auth/list-sessions', { headers: { cookie } }),
      await call(api, 'GET', '/console/auth/get-session', { headers: { cookie } }),
    ]);
    for (const answer of answers) {
      assertError(answer, 503, 'service_unavailable');
      assert.deepEqual(answer.headers.getSetCookie(), []);
    }
    assert.equal(await sessionOf(cookie), 200);
  }).timeout(40_000);
});
