/** CONSOLE_URL: people open the console at another host than programs use. The same processes answer at both. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { readConfig } from '../../src/config.ts';
import { withoutEmpty } from '../../src/read-setting.ts';
import { SessionReply } from '../../src/schemas/keys.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';
import { signInLink, useSignInLink } from '../support/sessions.ts';
import { farebox, until } from '../support/stack.ts';

const HOST = 'console.example';
const CONSOLE_URL = `http://${HOST}`;

describe('a console at another host', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ env: { CONSOLE_URL, DEV_MAIL: 'true' } });
  });
  after(() => api?.stop());

  const statusAt = async (host: string) => {
    const request = get(`${api.url}/dev/mail`, { headers: { host } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };

  it('shows kept emails there and on loopback, but not at a host that a stranger points here', async () => {
    for (const host of [HOST, 'localhost:1', '127.0.0.1', '[::1]:80']) {
      assert.equal(await statusAt(host), 200, host);
    }
    assert.equal(await statusAt('evil.example'), 404);
  });

  /** `fetch` would not set another Host. */
  async function getFromConsole(
    path: string,
  ): Promise<{ head: IncomingHttpHeaders; body: string }> {
    const request = get(api.url + path, { headers: { host: HOST } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return { head: response.headers, body: await text(response) };
  }

  it('is where its pages are: the host of the API leads there, with path and query', async () => {
    for (const path of [
      '/',
      '/console',
      '/console/usage?tool=search',
      '/console/auth/sign-in-link?token=x',
    ]) {
      const answer = await fetch(api.url + path, { redirect: 'manual' });
      assert.equal(answer.headers.get('location'), CONSOLE_URL + path);
    }
    assert.equal((await getFromConsole('/')).head.location, '/console/');
    assert.equal((await getFromConsole('/console/usage')).head.location, undefined);
  });

  it('is where the links of refusals, mails and commands lead', async () => {
    const account = await api.createAccount(0);
    const refused = await charge(api, account, { amount: 1 });
    const { topUpUrl } = (refused.body as { error: { topUpUrl: string } }).error;
    assert.match(topUpUrl, /^http:\/\/console\.example\/top-up\?link=/);
    const { email } = account;
    const headers = { origin: CONSOLE_URL };
    await call(api, 'POST', '/console/auth/sign-up', { headers, body: { email } });
    const mail = await until(async () => {
      const { rows } = await api.sql.query<{ body: string }>('select body from console.mails');
      return rows[0]?.body;
    });
    assert.match(mail, /^http:\/\/console\.example\/console\/set-password\?token=/m);
    const { env } = api;
    const printed = await farebox(['account', 'sign-in-link', account.consumerId], { env });
    assert.match(printed, /^http:\/\/console\.example\/console\/auth\/sign-in-link\?token=/);
    // As the API reads it.
    const slashed = { env: { ...env, CONSOLE_URL: `${CONSOLE_URL}/` } };
    const again = await farebox(['account', 'sign-in-link', account.consumerId], slashed);
    assert.match(again, /^http:\/\/console\.example\/console\/auth\/sign-in-link\?token=/);
  });

  it('alone may make changes with a session, whose cookie stays at its host', async () => {
    const { email } = await api.createAccount(0);
    const link = await signInLink(api, api.databaseUrl, email);
    assert.equal((await useSignInLink(link)).status, 403);
    const entered = await useSignInLink(link, { origin: CONSOLE_URL });
    const [setCookie = ''] = entered.headers.getSetCookie();
    assert.match(setCookie, /^farebox\.session_token=/);
    assert.doesNotMatch(setCookie, /domain=/i);
    const [cookie = ''] = setCookie.split(';');
    const create = (origin: string) =>
      call(api, 'POST', '/v1/keys', { headers: { cookie, origin }, body: { kind: 'consumer' } });
    assert.equal((await create(CONSOLE_URL)).status, 201);
    for (const origin of [api.url, `${CONSOLE_URL}.evil.example`, 'null', `https://${HOST}`]) {
      assertError(await create(origin), 403, 'foreign_origin');
      const headers = { cookie, origin };
      const out = await call(api, 'POST', '/console/auth/sign-out', { headers, body: {} });
      assert.equal(out.status, 403, origin);
    }
    const session = await call(api, 'GET', '/v1/session', { headers: { cookie } });
    assert.equal(bodyOf(session, 200, SessionReply).apiUrl, api.url);
  });

  it('needs no permission for requests between origins, and gets none', async () => {
    const headers = { origin: CONSOLE_URL, 'access-control-request-method': 'POST' };
    for (const [method, path] of [
      ['GET', '/v1/balance'],
      ['OPTIONS', '/v1/charges'],
      ['OPTIONS', '/console/auth/sign-in/email'],
    ] as const) {
      const answer = await fetch(api.url + path, { method, headers });
      const names = [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));
      assert.deepEqual(names, [], `${method} ${path}`);
    }
  });

  it('has passkeys of its own host name', async () => {
    const path = '/console/auth/passkey/generate-authenticate-options';
    const { body } = await getFromConsole(path);
    assert.equal((JSON.parse(body) as { rpId: string }).rpId, HOST);
  });

  it('is refused with a path', () => {
    const settings = { ...api.env, PORT: '8080' };
    const { consoleUrl } = readConfig({ ...settings, CONSOLE_URL: 'https://console.example/' });
    assert.equal(consoleUrl, 'https://console.example');
    assert.equal(
      readConfig(withoutEmpty({ ...settings, CONSOLE_URL: '' })).consoleUrl,
      'http://127.0.0.1:8080',
    );
    for (const [wrong, sentence] of [
      ['https://console.example/app', /CONSOLE_URL must have no path/],
      ['console.example', /CONSOLE_URL must be an http\(s\) URL/],
    ] as const) {
      assert.throws(() => readConfig({ ...settings, CONSOLE_URL: wrong }), sentence);
    }
  });
});
