/** The headers that keep a reply from being misinterpreted, stored, or framed. */
import assert from 'node:assert/strict';
import { ENDPOINTS } from '../../src/http/routes.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call, charge, exchange } from '../support/http.ts';

describe('security headers', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(1);
  });
  after(() => api.stop());

  it('are on every reply of the API: no sniffing, and no storing of GET replies', async () => {
    const balance = await call(api, 'GET', '/v1/balance', { key: account.consumerKey });
    const refused = await call(api, 'GET', '/v1/balance');
    const charged = await charge(api, account, { amount: 0.01 });
    assert.deepEqual([balance.status, refused.status, charged.status], [200, 401, 201]);
    for (const { headers } of [balance, refused, charged]) {
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
    }
    for (const { headers } of [balance, refused]) {
      assert.equal(headers.get('cache-control'), 'no-store');
    }
  });

  it('are on the replies of every route, of the console, and to a request that cannot be parsed', async () => {
    const key = account.developerKey;
    const paths = ENDPOINTS.filter(({ method }) => method === 'get').map(({ path }) => path);
    const others = [
      '/',
      '/console/',
      '/docs',
      '/openapi.json',
      '/llms.txt',
      '/pages.css',
      '/healthz',
    ];
    const more = [
      '/readyz',
      '/dev/mail',
      '/approval',
      '/top-up/confirm',
      '/console/auth/get-session',
      '/none',
    ];
    for (const path of [...paths, ...others, ...more]) {
      const url = api.url + path.replaceAll(/:\w+/g, 'none');
      const { headers } = await fetch(url, {
        headers: { authorization: `Bearer ${key}` },
        redirect: 'manual',
      });
      assert.equal(headers.get('x-content-type-options'), 'nosniff', path);
    }
    const file = await fetch(`${api.url}/v1/charges.csv`, {
      headers: { authorization: `Bearer ${key}` },
    });
    assert.equal(file.status, 200);
    assert.equal(file.headers.get('cache-control'), 'no-store');
    assert.match(
      await exchange(api, 'this is not HTTP\r\n\r\n'),
      /x-content-type-options: nosniff/i,
    );
  });

  it('let a page run nothing foreign, appear in no frame, and send no referrer', async () => {
    for (const path of ['/top-up', '/docs/errors']) {
      const { headers } = await call(api, 'GET', path);
      assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/);
      assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
    }
  });
});
