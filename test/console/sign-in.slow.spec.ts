/** Sign-in against impostors: addresses, passwords, links, cookies. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import {
  authBodyOf,
  refusalOf,
  cookiesOf,
  mailedToken,
  makeOperator,
  signIn,
  signInLink,
  useSignInLink,
} from '../support/sessions.ts';
import { startApi, until, type Server } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

describe('signing in to the console', () => {
  let api: TestApi;
  let server: Server;
  let secure: Server;
  let behindProxy: Server;

  before(async () => {
    api = await startTestApi();
    const env = { ...api.env, DEV_MAIL: 'true' };
    [server, secure, behindProxy] = await Promise.all([
      startApi({ env }),
      startApi({ env: { ...env, BASE_URL: 'https://pay.example.com' } }),
      startApi({ env: { ...env, CLIENT_ADDRESS_HEADER: 'X-Client' } }),
    ]);
  });
  after(async () => {
    await Promise.all([server, secure, behindProxy].map((each) => each?.stop()));
    await api?.stop();
  });
  beforeEach(() => api.sql.query('delete from console.rate_limits'));

  const auth = (path: string, body: object, headers = {}, at = server) =>
    call(at, 'POST', `/console/auth${path}`, { body, headers: { origin: at.url, ...headers } });

  const signInFrom = (place: number, email: string, password: string) =>
    auth('/sign-in/email', { email, password }, { 'x-client': `198.51.100.${place}` }, behindProxy);

  /** As a proxy that adds the port of the connection. */
  const askFrom = (place: number, email: string) => {
    const headers = { 'x-client': `203.0.113.${place}:4711` };
    return auth('/request-password-reset', { email }, headers, behindProxy);
  };

  const guess = (password: string, headers = {}) =>
    auth('/sign-in/email', { email: 'guessed@example.com', password }, headers);

  async function tokenFor(email: string): Promise<string> {
    await api.sql.query('delete from console.mails where recipient = $1', [email]);
    assert.equal((await auth('/sign-up', { email })).status, 200);
    return mailedToken(api.sql, email);
  }

  async function member(email: string): Promise<void> {
    const token = await tokenFor(email);
    const set = await auth('/reset-password', { token, newPassword: PASSWORD });
    assert.equal(set.status, 200, JSON.stringify(set.body));
  }

  const session = (cookie: string) => call(server, 'GET', '/v1/session', { headers: { cookie } });

  /** Returns the secret of the authenticator app, and the session that replaces that of the cookie. */
  async function turnOnTwoFactor(cookie: string) {
    const enabled = await auth('/two-factor/enable', { password: PASSWORD }, { cookie });
    assert.equal(enabled.status, 200, JSON.stringify(enabled.body));
    const { totpURI, backupCodes } = authBodyOf(enabled) as {
      totpURI: string;
      backupCodes: readonly string[];
    };
    const secret = new URL(totpURI).searchParams.get('secret') ?? '';
    const confirmed = await auth('/two-factor/verify-totp', { code: totp(secret) }, { cookie });
    assert.equal(confirmed.status, 200, JSON.stringify(confirmed.body));
    return { secret, backupCodes, renewed: cookiesOf(confirmed) };
  }

  it('gives the same answer for addresses with and without an account', async () => {
    await member('known@example.com');
    for (const path of ['/sign-up', '/request-password-reset']) {
      const known = await auth(path, { email: 'known@example.com' });
      const unknown = await auth(path, { email: 'unknown@example.com' });
      assert.deepEqual([known.status, known.body], [unknown.status, unknown.body]);
    }
    const wrong = { password: 'not the password' };
    const known = await auth('/sign-in/email', { email: 'known@example.com', ...wrong });
    const unknown = await auth('/sign-in/email', { email: 'nobody@example.com', ...wrong });
    assert.equal(known.status, 401);
    assert.equal(unknown.status, 401);
    const requestId = '';
    assert.deepEqual({ ...refusalOf(known), requestId }, { ...refusalOf(unknown), requestId });
  });

  it('responds before it looks for the account of an address, so its timing does not tell whether there is one', async () => {
    const email = 'timed@example.com';
    await member(email);
    await api.sql.query('delete from console.mails where recipient = $1', [email]);
    for (const path of ['/sign-up', '/request-password-reset']) {
      await api.sql.query('begin; lock table console.users in access exclusive mode');
      const asked = await auth(path, { email });
      await api.sql.query('rollback');
      assert.equal(asked.status, 200, JSON.stringify(asked.body));
      await mailedToken(api.sql, email);
      await api.sql.query('delete from console.mails where recipient = $1', [email]);
    }
  });

  it('gives neither an account nor a session before the address is verified', async () => {
    await tokenFor('unproven@example.com');
    const { rows } = await api.sql.query(
      `select u.account_id, (select count(*)::int from farebox.accounts where email = u.email) as accounts
       from console.users u where email = 'unproven@example.com'`,
    );
    assert.deepEqual(rows, [{ account_id: null, accounts: 0 }]);
    const direct = await auth('/sign-up/email', {
      email: 'direct@example.com',
      password: PASSWORD,
      name: 'x',
    });
    assert.notEqual(direct.status, 200);
  });

  it('accepts an emailed link once, within its hour, and ends earlier sessions', async () => {
    const email = 'reset@example.com';
    await member(email);
    const cookie = await signIn(server, api.databaseUrl, email);
    const token = await tokenFor(email);
    const change = (newPassword: string) => auth('/reset-password', { token, newPassword });
    assert.equal((await change('short')).status, 400);
    assert.equal((await change('another password')).status, 200);
    assert.equal((await change('a third password')).status, 400);
    assert.equal((await call(server, 'GET', '/v1/balance', { headers: { cookie } })).status, 401);
    assert.equal((await auth('/sign-in/email', { email, password: PASSWORD })).status, 401);
    const late = await tokenFor('late@example.com');
    await api.sql.query(
      `update console.verifications set expires_at = now() - interval '1 second'`,
    );
    const answer = await auth('/reset-password', { token: late, newPassword: PASSWORD });
    assert.equal(answer.status, 400);
  });

  it('refuses a password that many people use, or one like it', async () => {
    const email = 'common@example.com';
    const token = await tokenFor(email);
    for (const newPassword of [
      '1234567890',
      'QwertyUiop',
      'poiuytrewq',
      'Baseball!1',
      'abc123abc123',
      'zzzzzzzzzzzz',
      'Farebox2026',
    ]) {
      const answer = await auth('/reset-password', { token, newPassword });
      assert.equal(answer.status, 400, newPassword);
      const { reason, message } = refusalOf(answer);
      assert.equal(reason, 'PASSWORD_TOO_COMMON', newPassword);
      assert.match(message, /too easy to guess/);
    }
    assert.equal((await auth('/reset-password', { token, newPassword: PASSWORD })).status, 200);
  });

  it('stores neither link tokens nor passwords in plain text', async () => {
    const token = await tokenFor('hashed@example.com');
    await auth('/reset-password', { token, newPassword: PASSWORD });
    const link = await signInLink(server, api.databaseUrl, 'hashed@example.com');
    const { rows } = await api.sql.query<{ kept: string }>(
      `select string_agg(t::text, ' ') as kept from
         (select v::text from console.verifications v union all select c::text from console.credentials c
          union all select l::text from console.sign_in_links l) t`,
    );
    const kept = rows[0]?.kept ?? '';
    const secrets = [token, PASSWORD, new URL(link).searchParams.get('token') ?? ''];
    for (const secret of secrets) assert.ok(secret !== '' && !kept.includes(secret));
  });

  it('accepts an operator’s sign-in link once, also under concurrent requests', async () => {
    const { email } = await api.createAccount(0);
    const link = await signInLink(server, api.databaseUrl, email);
    const answers = await Promise.all(Array.from({ length: 8 }, () => useSignInLink(link)));
    const entered = answers.filter((answer) => answer.headers.getSetCookie().length > 0);
    assert.equal(entered.length, 1);
    const late = await useSignInLink(link);
    assert.match(late.headers.get('location') ?? '', /sign-in\?reason=link$/);
  });

  it('stops guessing: it refuses more than ten attempts a minute', async () => {
    await member('guessed@example.com');
    const statuses: number[] = [];
    for (let n = 0; n < 12; n += 1) statuses.push((await guess(`wrong password ${n}`)).status);
    assert.deepEqual(
      statuses.slice(0, 10),
      Array.from({ length: 10 }, () => 401),
    );
    assert.deepEqual(statuses.slice(10), [429, 429]);
    assert.equal((await guess(PASSWORD)).status, 429);
    // Nor by pretending to be another client.
    for (const header of ['x-forwarded-for', 'x-farebox-address', 'x-real-ip', 'forwarded']) {
      assert.equal((await guess(PASSWORD, { [header]: '203.0.113.7' })).status, 429, header);
    }
  });

  it('stops guesses at the password of one address from many places, and affects no other address', async () => {
    await member('target@example.com');
    await member('other@example.com');
    const statuses: number[] = [];
    for (let place = 1; place <= 12; place += 1) {
      statuses.push((await signInFrom(place, 'target@example.com', `guess ${place}`)).status);
    }
    assert.deepEqual(statuses.slice(8), [401, 401, 429, 429]);
    assert.equal((await signInFrom(20, 'TARGET@example.com', PASSWORD)).status, 429);
    assert.equal((await signInFrom(21, 'other@example.com', PASSWORD)).status, 200);
    // Nor does the answer tell whether the address has an account.
    for (let place = 30; place < 40; place += 1) {
      assert.equal((await signInFrom(place, 'no-one@example.com', 'guess')).status, 401);
    }
    assert.equal((await signInFrom(40, 'no-one@example.com', 'guess')).status, 429);
    // A link in a mail proves the owner, who can sign in at once.
    await member('target@example.com');
    assert.equal((await signInFrom(41, 'target@example.com', PASSWORD)).status, 200);
    await api.sql.query(
      `update console.sign_in_attempts set began_at = began_at - interval '15 minutes'`,
    );
    assert.equal((await signInFrom(42, 'no-one@example.com', 'guess')).status, 401);
  });

  it('mails an address at most ten links in fifteen minutes, from wherever they are asked for', async () => {
    const linksTo = async (email: string): Promise<number> => {
      const { rows } = await api.sql.query<{ count: number }>(
        `select count(*)::int from console.mails where recipient = $1 and body like '%token=%'`,
        [email],
      );
      return rows[0]?.count ?? 0;
    };
    await member('flooded@example.com');
    await member('calm@example.com');
    await api.sql.query('delete from console.mails');
    const asked = await Promise.all(
      Array.from({ length: 14 }, (_, place) => askFrom(place + 1, 'flooded@example.com')),
    );
    assert.deepEqual(new Set(asked.map(({ status }) => status)), new Set([200]));
    // One was mailed for the sign-up. A request is answered before it is counted, and would start a new
    // window if it was counted after the update below.
    await until(async () => {
      const { rows } = await api.sql.query<{ count: number }>(
        `select count from console.sign_in_attempts where email_hash = sha256('link to flooded@example.com')`,
      );
      return rows[0]?.count === 15;
    });
    await until(async () => (await linksTo('flooded@example.com')) === 9);
    await askFrom(30, 'calm@example.com');
    await until(async () => (await linksTo('calm@example.com')) === 1);
    assert.equal(await linksTo('flooded@example.com'), 9);
    await api.sql.query(
      `update console.sign_in_attempts set began_at = began_at - interval '15 minutes'`,
    );
    await askFrom(31, 'flooded@example.com');
    await until(async () => (await linksTo('flooded@example.com')) === 10);
  });

  it('counts attempts for fifteen minutes, while the counts of client addresses are forgotten', async () => {
    await member('patient@example.com');
    for (let place = 50; place < 60; place += 1) {
      await signInFrom(place, 'patient@example.com', 'guess');
    }
    // Two minutes later, the first request of a place that is known deletes what has expired.
    await api.sql.query('update console.rate_limits set last_request = last_request - 120000');
    await signInFrom(50, 'somebody@example.com', 'guess');
    assert.equal((await signInFrom(60, 'patient@example.com', PASSWORD)).status, 429);
  });

  it('keeps the count of attempts when a request is malformed', async () => {
    await member('malformed@example.com');
    for (let place = 70; place < 80; place += 1) {
      await signInFrom(place, 'malformed@example.com', 'guess');
    }
    const malformed = { email: 'malformed@example.com', password: 'guess', rememberMe: 'no' };
    const headers = { 'x-client': '198.51.100.80' };
    await auth('/sign-in/email', malformed, headers, behindProxy);
    assert.equal((await signInFrom(81, 'malformed@example.com', PASSWORD)).status, 429);
    await api.sql.query('delete from console.sign_in_attempts');
    for (let place = 70; place < 79; place += 1) {
      await signInFrom(place, 'malformed@example.com', 'guess');
      await auth('/sign-in/email', malformed, headers, behindProxy);
    }
    assert.equal((await signInFrom(82, 'malformed@example.com', PASSWORD)).status, 429);
  });

  it('forgets the attempts of somebody who then types the right password', async () => {
    await member('typo@example.com');
    for (let round = 0; round < 2; round += 1) {
      for (let n = 0; n < 6; n += 1) {
        await api.sql.query('delete from console.rate_limits');
        const answer = await auth('/sign-in/email', {
          email: 'typo@example.com',
          password: 'typo',
        });
        assert.equal(answer.status, 401);
      }
      const right = { email: 'typo@example.com', password: PASSWORD };
      assert.equal((await auth('/sign-in/email', right)).status, 200);
    }
  });

  it('lets nobody past the code of two-factor authentication by a sign-in link', async () => {
    const { email } = await api.createAccount(0);
    await signIn(server, api.databaseUrl, email);
    await api.sql.query('update console.users set two_factor_enabled = true where email = $1', [
      email,
    ]);
    const link = await signInLink(server, api.databaseUrl, email);
    const answer = await useSignInLink(link);
    assert.match(answer.headers.get('location') ?? '', /sign-in\?reason=two-factor$/);
    assert.deepEqual(answer.headers.getSetCookie(), []);
  });

  it('sets a cookie that scripts cannot read and other sites cannot send', async () => {
    const { email } = await api.createAccount(0);
    const attributes = async (at: Server) => {
      const link = await signInLink(at, api.databaseUrl, email);
      const origin = at === secure ? 'https://pay.example.com' : at.url;
      const answer = await useSignInLink(link, { origin });
      return answer.headers.getSetCookie()[0] ?? '';
    };
    const plain = await attributes(server);
    assert.match(plain, /^farebox\.session_token=.*; HttpOnly; SameSite=Lax$/);
    const overTls = await attributes(secure);
    assert.match(overTls, /^__Host-farebox\.session_token=.*; HttpOnly; Secure; SameSite=Lax$/);
  });

  it('refuses sign-out and sign-in from another site', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(server, api.databaseUrl, email);
    const headers = { cookie, origin: 'https://elsewhere.example' };
    const out = await call(server, 'POST', '/console/auth/sign-out', { headers, body: {} });
    assert.equal(out.status, 403);
    assert.equal((await call(server, 'GET', '/v1/session', { headers })).status, 200);
  });

  it('gives a cookie with another token or signature no access', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(server, api.databaseUrl, email);
    const changed = [
      cookie.replace('token=', 'token=x'),
      cookie.slice(0, -5),
      cookie.replace(/\..*$/, ''),
      'farebox.session_token=',
      `farebox.session_token=${'x'.repeat(4_000)}`,
    ];
    for (const bad of changed) {
      const answer = await call(server, 'GET', '/v1/session', { headers: { cookie: bad } });
      assert.equal(answer.status, 401, bad.slice(0, 60));
    }
  });

  it('adds a passkey only within ten minutes of signing in', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(server, api.databaseUrl, email);
    const begin = () =>
      call(server, 'GET', '/console/auth/passkey/generate-register-options', {
        headers: { cookie },
      });
    assert.equal((await begin()).status, 200);
    await api.sql.query(
      `update console.sessions set created_at = created_at - interval '10 minutes'
       where user_id = (select id from console.users where email = $1)`,
      [email],
    );
    const late = await begin();
    assert.equal(late.status, 403);
    assert.equal(refusalOf(late).reason, 'SESSION_NOT_FRESH');
  });

  it('logs each attempt that failed, with its kind and the client, and without the address or the password', async () => {
    const email = 'logged@example.com';
    await member(email);
    await auth('/sign-in/email', { email, password: 'wrong password' });
    const { secret } = await turnOnTwoFactor(await signIn(server, api.databaseUrl, email));
    const asked = await auth('/sign-in/email', { email, password: PASSWORD });
    const wrong = totp(secret) === '000000' ? '000001' : '000000';
    const cookie = cookiesOf(asked);
    assert.equal((await auth('/two-factor/verify-totp', { code: wrong }, { cookie })).status, 401);
    const log = await until(async () => {
      const text = await readFile(server.logFile, 'utf8');
      return text.includes('/two-factor/verify-totp') && text;
    });
    const lines = log.split('\n').filter((line) => line.includes('an attempt to sign in failed'));
    const [code, password] = lines.toReversed().map((line) => JSON.parse(line) as object);
    assert.partialDeepStrictEqual(password, {
      by: '/sign-in/email',
      status: 401,
      client: '127.0.0.1',
    });
    assert.partialDeepStrictEqual(code, { by: '/two-factor/verify-totp', status: 401 });
    assert.ok(!log.includes(email) && !log.includes('wrong password'));
  });

  it('requires a code when two-factor authentication is on', async () => {
    const email = 'careful@example.com';
    await member(email);
    const cookie = await signIn(server, api.databaseUrl, email);
    const { secret } = await turnOnTwoFactor(cookie);

    const first = await auth('/sign-in/email', { email, password: PASSWORD });
    assert.equal((authBodyOf(first) as { twoFactorRedirect?: boolean }).twoFactorRedirect, true);
    const half = cookiesOf(first);
    assert.equal((await session(half)).status, 401);
    const wrong = await auth('/two-factor/verify-totp', { code: '000000' }, { cookie: half });
    assert.notEqual(wrong.status, 200);
    const right = await auth(
      '/two-factor/verify-totp',
      { code: totp(secret, 1) },
      { cookie: half },
    );
    assert.equal(right.status, 200, JSON.stringify(right.body));
    assert.equal((await session(cookiesOf(right))).status, 200);
  });

  it('takes each backup code once instead of the code, and logs wrong ones', async () => {
    const email = 'lost-phone@example.com';
    await member(email);
    const cookie = await signIn(server, api.databaseUrl, email);
    const { backupCodes } = await turnOnTwoFactor(cookie);
    const [first = '', second = ''] = backupCodes;
    const use = async (code: string) => {
      const half = cookiesOf(await auth('/sign-in/email', { email, password: PASSWORD }));
      return auth('/two-factor/verify-backup-code', { code }, { cookie: half });
    };
    const signedIn = await use(first);
    assert.equal(signedIn.status, 200, JSON.stringify(signedIn.body));
    assert.equal((await session(cookiesOf(signedIn))).status, 200);
    assert.equal((await use(first)).status, 401);
    assert.equal((await use(second)).status, 200);
    const { rows } = await api.sql.query<{ kept: string }>(
      'select string_agg(t::text, $1) as kept from console.two_factors t',
      [' '],
    );
    assert.ok(!rows[0]?.kept.includes(backupCodes[2] ?? ''));
    await until(async () => {
      const log = await readFile(server.logFile, 'utf8');
      const lines = log
        .split('\n')
        .filter((line) => line.includes('/two-factor/verify-backup-code'));
      return lines.some((line) => line.includes('an attempt to sign in failed'));
    });
  });

  it('ends the sessions from before two-factor authentication, which would be an operator’s now', async () => {
    const email = 'promoted@example.com';
    await member(email);
    const earlier = await signIn(server, api.databaseUrl, email);
    const cookie = await signIn(server, api.databaseUrl, email);
    await makeOperator(api.sql, email, false);
    const { renewed } = await turnOnTwoFactor(cookie);
    const accounts = (by: string) =>
      call(server, 'GET', '/v1/operator/accounts?query=a', { headers: { cookie: by } });
    assert.equal((await accounts(renewed)).status, 200);
    for (const ended of [earlier, cookie]) assert.equal((await accounts(ended)).status, 401);
  });

  it('shows emails to nobody unless it is set to keep them', async () => {
    assert.equal((await fetch(`${api.url}/dev/mail`)).status, 404);
    assert.equal((await fetch(`${server.url}/dev/mail`)).status, 200);
  });
});
