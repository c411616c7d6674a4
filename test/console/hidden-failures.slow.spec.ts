/** The sign-in library hides some failures of the database. People are told of them. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, call } from '../support/http.ts';
import { newPasskey } from '../support/passkey.ts';
import { authBodyOf, cookiesOf, signIn } from '../support/sessions.ts';

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
    });
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
  });

  it('does not say that the passkey is wrong when nobody can be signed in', async () => {
    const { email } = await api.createAccount(0);
    await signIn(api, api.databaseUrl, email);
    const passkey = await newPasskey(api.sql, email);
    const enter = async () => {
      const asked = await call(api, 'GET', '/console/auth/passkey/generate-authenticate-options');
      const { challenge } = authBodyOf(asked) as { challenge: string };
      const response = passkey.respond(challenge, api.url);
      return auth('/passkey/verify-authentication', { response }, cookiesOf(asked));
    };
    // The passkey can be read, and the count of its signatures cannot be written.
    const failed = await whileHeld('select from console.passkeys for update', enter);
    assertError(failed, 503, 'service_unavailable');
    assert.deepEqual(failed.headers.getSetCookie(), []);
    const entered = await enter();
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    assert.equal(await sessionOf(cookiesOf(entered)), 200);
  });

  for (const path of ['/revoke-session', '/revoke-other-sessions']) {
    it(`says that another session has ended only when it has, whichever statement fails: ${path}`, async () => {
      const { email } = await api.createAccount(0);
      const cookie = await signIn(api, api.databaseUrl, email);
      const statuses = new Set<number>();
      for (let failing = 1; failing <= 10; failing += 1) {
        const other = await signIn(api, api.databaseUrl, email);
        const token = decodeURIComponent(other.slice(other.indexOf('=') + 1)).split('.')[0];
        const { status } = await whileFailing(failing, () => auth(path, { token }, cookie));
        statuses.add(status);
        if (status < 300) assert.equal(await sessionOf(other), 401, `statement ${failing} failed`);
        await api.sql.query('delete from console.rate_limits');
      }
      assert.ok(statuses.has(200) && statuses.size > 1, [...statuses].join());
    });
  }

  it('ends no session for another page', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    const other = await signIn(api, api.databaseUrl, email);
    const headers = { origin: 'https://elsewhere.example.com', cookie };
    const path = '/console/auth/revoke-other-sessions';
    const refused = await call(api, 'POST', path, { body: {}, headers });
    assertError(refused, 403, 'sign_in_refused', undefined, { reason: 'INVALID_ORIGIN' });
    assert.equal(await sessionOf(other), 200);
  });
});

/** Makes one statement on sessions fail: of those that `work` sends, the one of this number. */
async function whileFailing<T>(number: number, work: () => Promise<T>): Promise<T> {
  const query = Reflect.get(Client.prototype, 'query') as (...asked: unknown[]) => unknown;
  let seen = 0;
  const failing = function (this: Client, ...asked: unknown[]): unknown {
    const [text] = asked;
    if (typeof text === 'string' && text.includes('"sessions"')) {
      seen += 1;
      if (seen === number) return Promise.reject(new Error('this statement fails'));
    }
    return Reflect.apply(query, this, asked);
  };
  Reflect.set(Client.prototype, 'query', failing);
  try {
    return await work();
  } finally {
    Reflect.set(Client.prototype, 'query', query);
  }
}
