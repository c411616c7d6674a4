/** Somebody who guesses the password of an address does not keep its owner out. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { cookiesOf, mailedToken } from '../support/sessions.ts';

const PASSWORD = 'correct horse battery';

describe('signing in while somebody guesses the password', () => {
  let api: TestApi;
  let guesses = 0;

  before(async () => {
    api = await startTestApi({ env: { DEV_MAIL: 'true', CLIENT_ADDRESS_HEADER: 'X-Client' } });
  });
  after(() => api?.stop());
  beforeEach(() => api.sql.query('delete from console.rate_limits'));

  const auth = (place: string, path: string, body: object, cookie = '') =>
    call(api, 'POST', `/console/auth${path}`, {
      body,
      headers: { origin: api.url, 'x-client': place, ...(cookie && { cookie }) },
    });
  const enter = (place: string, email: string, password = PASSWORD) =>
    auth(place, '/sign-in/email', { email, password });

  async function setPassword(place: string, email: string): Promise<void> {
    await api.sql.query('delete from console.mails where recipient = $1', [email]);
    await auth(place, '/sign-up', { email });
    const token = await mailedToken(api.sql, email);
    const set = await auth(place, '/reset-password', { token, newPassword: PASSWORD });
    assert.equal(set.status, 200, JSON.stringify(set.body));
  }

  /** Ten wrong passwords, each from another place: the right one is refused from a place that is not known. */
  async function guess(email: string): Promise<void> {
    for (let n = 0; n < 10; n += 1) await enter(elsewhere(), email, 'a wrong guess');
    assert.equal((await enter(elsewhere(), email)).status, 429);
  }

  function elsewhere(): string {
    guesses += 1;
    return `198.51.100.${guesses}`;
  }

  /** A quarter of an hour later, which ends what was counted. */
  const quarterLater = () =>
    api.sql.query(
      `update console.sign_in_attempts set began_at = began_at - interval '16 minutes'`,
    );

  it('works where the owner has just set a password by a link', async () => {
    const email = 'reset@example.com';
    await setPassword('203.0.113.1', email);
    await guess(email);
    assert.equal((await enter('203.0.113.1', email)).status, 200);
    assert.equal((await enter('203.0.113.2', email)).status, 429);
  });

  it('works where the owner has a session, up to ten wrong passwords from there', async () => {
    const email = 'known@example.com';
    await setPassword('2001:db8:1:2::1', email);
    assert.equal((await enter('2001:db8:1:2::2', email)).status, 200);
    await quarterLater();
    await guess(email);
    assert.equal((await enter('2001:db8:1:2::3', 'Known@example.com')).status, 200);
    for (let n = 0; n < 10; n += 1) {
      await api.sql.query('delete from console.rate_limits');
      assert.equal((await enter('2001:db8:1:2::4', email, 'a typo')).status, 401);
    }
    await api.sql.query('delete from console.rate_limits');
    assert.equal((await enter('2001:db8:1:2::4', email)).status, 429);
  });

  it('works after ten wrong passwords once a new one is set, where the owner is known and in a session', async () => {
    const email = 'anew@example.com';
    await setPassword('203.0.113.5', email);
    for (let n = 0; n < 10; n += 1) await enter('203.0.113.5', email, 'a typo');
    await api.sql.query('delete from console.rate_limits');
    assert.equal((await enter('203.0.113.5', email)).status, 429);
    await setPassword('203.0.113.5', email);
    const entered = await enter('203.0.113.5', email);
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    const enable = (password: string, by = cookiesOf(entered)) =>
      auth('203.0.113.5', '/two-factor/enable', { password }, by);
    for (let n = 0; n < 10; n += 1) await enable('a typo');
    await api.sql.query('delete from console.rate_limits');
    assert.equal((await enable(PASSWORD)).status, 429);
    await setPassword('203.0.113.5', email);
    const again = cookiesOf(await enter('203.0.113.5', email));
    assert.equal((await enable(PASSWORD, again)).status, 200);
  });

  it('leaves a session as it is: its password turns two-factor authentication on', async () => {
    const email = 'inside@example.com';
    await setPassword('203.0.113.3', email);
    const cookie = cookiesOf(await enter('203.0.113.3', email));
    await guess(email);
    const enabled = await auth('203.0.113.4', '/two-factor/enable', { password: PASSWORD }, cookie);
    assert.equal(enabled.status, 200, JSON.stringify(enabled.body));
  });
});
