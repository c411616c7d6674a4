/**
 * The sign-in endpoints answer every input that no page sends with a refusal in the one shape of errors,
 * never with a failure.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ErrorReply } from '../../src/schemas/errors.ts';
import { errorTypeOf } from '../../src/domain/errors.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { assertError, call } from '../support/http.ts';
import { cookiesOf, mailedToken, signIn } from '../support/sessions.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The fields of each body, as a page could send them. */
const POSTS: Readonly<Record<string, Fields>> = {
  '/passkey/delete-passkey': { id: randomUUID() },
  '/passkey/verify-authentication': { response: { id: 'a', rawId: 'a', type: 'public-key' } },
  '/passkey/verify-registration': { name: 'mine', response: { id: 'a', rawId: 'a' } },
  '/request-password-reset': { email: 'nobody@example.com', redirectTo: '/console/' },
  '/reset-password': { token: 'none', newPassword: 'another password 1234' },
  '/revoke-other-sessions': {},
  '/revoke-session': { token: 'none' },
  '/sign-in/email': {
    email: 'nobody@example.com',
    password: 'another password 1234',
    callbackURL: '/console/',
    rememberMe: true,
  },
  '/sign-out': {},
  '/sign-up': { email: 'nobody@example.com' },
  '/two-factor/disable': { password: 'another password 1234' },
  '/two-factor/enable': { password: 'another password 1234', issuer: 'Farebox', method: 'totp' },
  '/two-factor/verify-backup-code': { code: 'a-b', disableSession: false, trustDevice: false },
  '/two-factor/verify-totp': { code: '123456', trustDevice: false },
};

const GETS: Readonly<Record<string, readonly string[]>> = {
  '/get-session': ['disableCookieCache', 'disableRefresh'],
  '/list-sessions': [],
  '/passkey/generate-authenticate-options': [],
  '/passkey/generate-register-options': ['name', 'context', 'authenticatorAttachment'],
  '/passkey/list-user-passkeys': [],
};

const STRANGE: Readonly<Record<string, unknown>> = {
  null: null,
  'a number': 7,
  'a boolean': true,
  'a list': ['a'],
  'an object': { a: 'b' },
  'empty text': '',
  'text with NUL': 'a\0b',
  'an address with NUL': 'a\0b@example.com',
  'half a surrogate pair': 'a\ud800b',
  'long text': 'a'.repeat(50_000),
  'a long address': `${'a'.repeat(50_000)}@example.com`,
  'an id of another kind': 'not-a-uuid',
  'another site': 'https://mallory.example',
};
const DEEP = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;

describe('the sign-in endpoints', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApiProcesses({ env: { DEV_MAIL: 'true' } });
  });
  after(() => api?.stop());

  async function assertAnswered(
    method: string,
    path: string,
    what: string,
    options: Parameters<typeof call>[3],
  ): Promise<string | undefined> {
    await api.sql.query('delete from console.rate_limits');
    await api.sql.query('delete from console.sign_in_attempts');
    const answer = await call(api, method, `/console/auth${path}`, options);
    if (answer.status < 400) return undefined;
    if (answer.status >= 500) return `${path}, ${what}: ${answer.status}`;
    const { error } = (answer.body as Partial<ErrorReply>) ?? {};
    if (error && errorTypeOf(error.code) === error.type && error.docUrl.endsWith(error.code))
      return undefined;
    return `${path}, ${what}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 100)}`;
  }

  const visitor = async () => {
    const { email } = await api.createAccount(0);
    return signIn(api, api.databaseUrl, email);
  };

  for (const [path, fields] of Object.entries(POSTS)) {
    it(`refuse strange bodies at ${path}`, async () => {
      const problems: (string | undefined)[] = [];
      let cookie = await visitor();
      const send = async (body: unknown, what: string) => {
        const options = path.startsWith('/passkey/verify');
        const challenge = options
          ? cookiesOf(
              await call(api, 'GET', `/console/auth${CHALLENGES[path]}`, { headers: { cookie } }),
            )
          : '';
        const headers = { origin: api.url, cookie: challenge ? `${cookie}; ${challenge}` : cookie };
        const rawBody = typeof body === 'string' ? body : JSON.stringify(body);
        problems.push(await assertAnswered('POST', path, what, { rawBody, headers }));
        if (path === '/sign-out') cookie = await visitor();
      };
      await send(fields, 'its own fields');
      for (const [what, value] of Object.entries(STRANGE)) {
        if (what !== 'long text') await send(JSON.stringify(value), `${what} as the body`);
        for (const name of Object.keys(fields)) {
          await send({ ...fields, [name]: value }, `${what} as ${name}`);
        }
        for (const name of Object.keys((fields['response'] as Fields | undefined) ?? {})) {
          const response = { ...(fields['response'] as Fields), [name]: value };
          await send({ ...fields, response }, `${what} as response.${name}`);
        }
      }
      await send('{', 'half a body');
      await send(DEEP, 'a deep list');
      await send(`{"${Object.keys(fields)[0] ?? 'other'}": ${DEEP}}`, 'a deep list in a field');
      await send('\ufeff{}', 'a byte order mark');
      assert.deepEqual(problems.filter(Boolean), []);
    });
  }

  it('refuse strange queries', async () => {
    const problems: (string | undefined)[] = [];
    const headers = { cookie: await visitor() };
    for (const [path, names] of Object.entries(GETS)) {
      for (const name of [...names, 'other']) {
        for (const text of [
          '',
          'a%00b',
          '%ff',
          '%',
          '%ed%a0%80',
          'a'.repeat(5_000),
          `a&${name}=b`,
        ]) {
          const asked = `${path}?${name}=${text}`;
          problems.push(await assertAnswered('GET', asked, '', { headers }));
        }
      }
    }
    assert.deepEqual(problems.filter(Boolean), []);
  });

  it('refuse strange cookies, and headers that a proxy may set', async () => {
    const problems: (string | undefined)[] = [];
    const names = [
      'session_token',
      'session_data',
      'two_factor',
      'better-auth-passkey',
      'dont_remember',
    ];
    for (const name of names) {
      for (const value of [
        '',
        '%',
        '%00',
        'a.b',
        `a%00b.${'a'.repeat(43)}%3D`,
        'a'.repeat(4_000),
      ]) {
        const cookie = `farebox.${name}=${value}`;
        const headers = { origin: api.url, cookie };
        for (const path of ['/get-session', '/list-sessions']) {
          problems.push(await assertAnswered('GET', path, cookie, { headers }));
        }
        for (const path of [
          '/two-factor/verify-totp',
          '/passkey/verify-authentication',
          '/sign-out',
        ]) {
          const body = POSTS[path];
          problems.push(await assertAnswered('POST', path, cookie, { headers, body }));
        }
      }
    }
    for (const header of [
      'x-forwarded-proto',
      'x-forwarded-host',
      'x-forwarded-for',
      'forwarded',
    ]) {
      for (const value of ['https,http', 'a b', ':', 'javascript']) {
        const headers = { [header]: value };
        problems.push(
          await assertAnswered('GET', '/get-session', `${header}: ${value}`, { headers }),
        );
      }
    }
    assert.deepEqual(problems.filter(Boolean), []);
  });

  it('take only JSON', async () => {
    const origin = { origin: api.url };
    const rawBody = 'email=nobody%40example.com&password=another+password+1234';
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data']) {
      const headers = { ...origin, 'content-type': type };
      const answer = await call(api, 'POST', '/console/auth/sign-in/email', { rawBody, headers });
      assertError(answer, 415, 'unsupported_media_type');
    }
  });

  it('count no attempt to sign in as a link that was mailed', async () => {
    const email = 'victim@example.com';
    const headers = { origin: api.url };
    const send = async (path: string, body: object) => {
      await api.sql.query('delete from console.rate_limits');
      return call(api, 'POST', `/console/auth${path}`, { headers, body });
    };
    for (let n = 0; n < 11; n += 1) {
      await send('/sign-in/email', { email: `link to ${email}`, password: 'guess' });
    }
    await send('/sign-up', { email });
    assert.notEqual(await mailedToken(api.sql, email), '');
  });

  it('log no failure, and no long text, for any of it', async () => {
    const lines = (await readFile(api.logFile, 'utf8')).trim().split('\n');
    const failures = lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
    assert.deepEqual(failures, []);
    assert.ok(Math.max(...lines.map(({ length }) => length)) < 5_000);
  });
});

const CHALLENGES: Readonly<Record<string, string>> = {
  '/passkey/verify-authentication': '/passkey/generate-authenticate-options',
  '/passkey/verify-registration': '/passkey/generate-register-options',
};
