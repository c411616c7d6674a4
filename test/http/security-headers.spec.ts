/** The headers that keep a reply from being misinterpreted, stored, or framed. */
import assert from 'node:assert/strict';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call, charge } from '../support/http.ts';

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
