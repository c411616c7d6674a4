/** A link that proves an address and is used while the database fails: it works again, or was enough. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { mailedToken, signInLink, useSignInLink } from '../support/sessions.ts';

const PASSWORD = 'correct horse battery';

describe('a link to the console', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ env: { DEV_MAIL: 'true' } });
  });
  after(() => api?.stop());

  const auth = (path: string, body: object) =>
    call(api, 'POST', `/console/auth${path}`, { body, headers: { origin: api.url } });
  const tokenFor = async (email: string): Promise<string> => {
    await auth('/sign-up', { email });
    return mailedToken(api.sql, email);
  };
  const sessionOf = async (cookie: string) =>
    (await call(api, 'GET', '/v1/session', { headers: { cookie } })).status;
  const whileLocked = async <T>(table: string, work: () => Promise<T>): Promise<T> => {
    await api.sql.query('begin');
    await api.sql.query(`lock table ${table} in access exclusive mode`);
    try {
      return await work();
    } finally {
      await api.sql.query('rollback');
    }
  };

  it('that sets the first password leads to an account, even if that cannot be made at once', async () => {
    const email = 'first@example.com';
    const token = await tokenFor(email);
    const signIn = () => auth('/sign-in/email', { email, password: PASSWORD });
    // Which only a new account needs.
    const [set, early] = await whileLocked('farebox.consumers', async () => [
      await auth('/reset-password', { token, newPassword: PASSWORD }),
      await signIn(),
    ]);
    assert.equal(set?.status, 200, JSON.stringify(set?.body));
    assert.equal(early?.status, 503);
    const entered = await signIn();
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    assert.equal(await sessionOf(cookieOf(entered.headers)), 200);
  });

  it('sets the password also if the attempts to guess it cannot be forgotten', async () => {
    const body = { token: await tokenFor('guessed@example.com'), newPassword: PASSWORD };
    const set = await whileLocked('console.sign_in_attempts', () => auth('/reset-password', body));
    assert.equal(set.status, 200, JSON.stringify(set.body));
  });

  it('sets no password while the mail about it cannot be noted, and then works again', async () => {
    const body = { token: await tokenFor('unheard@example.com'), newPassword: PASSWORD };
    const failed = await whileLocked('console.owed_mails', () => auth('/reset-password', body));
    assert.equal(failed.status, 503, JSON.stringify(failed.body));
    const set = await auth('/reset-password', body);
    assert.equal(set.status, 200, JSON.stringify(set.body));
  });

  it('of an operator signs in somebody new once, also by many requests at the same moment', async () => {
    const email = 'invited@example.com';
    const link = await signInLink(api, api.databaseUrl, email);
    const answers = await Promise.all(Array.from({ length: 5 }, () => useSignInLink(link)));
    const places = answers.map(({ headers }) => headers.get('location') ?? '').toSorted();
    const late = '/console/sign-in?reason=link';
    assert.deepEqual(places, ['/console/', late, late, late, late]);
    const { rows } = await api.sql.query(
      `select a.email from console.sessions s join console.users u on u.id = s.user_id
       join farebox.accounts a on a.id = u.account_id where u.email = $1`,
      [email],
    );
    assert.deepEqual(rows, [{ email }]);
  });

  for (const table of ['farebox.accounts', 'console.sessions', 'console.sign_in_links']) {
    it(`of an operator works again after a failure of ${table}`, async () => {
      const { email } = await api.createAccount(0);
      const link = await signInLink(api, api.databaseUrl, email);
      const open = () => useSignInLink(link);
      const failed = await whileLocked(table, open);
      assert.equal(failed.status, 503);
      assert.deepEqual(failed.headers.getSetCookie(), []);
      const entered = await open();
      assert.equal(await sessionOf(cookieOf(entered.headers)), 200);
      const { headers } = await open();
      assert.match(headers.get('location') ?? '', /sign-in\?reason=link$/);
    });
  }
});

function cookieOf(headers: Headers): string {
  return headers.getSetCookie()[0]?.split(';')[0] ?? '';
}
