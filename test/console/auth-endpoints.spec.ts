/** Of the sign-in library's endpoints, only those that the console uses can be reached. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';

describe('the endpoints of the console', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('are those that it uses', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    const headers = { cookie, origin: api.url };
    for (const path of [
      '/update-user',
      '/change-password',
      '/change-email',
      '/delete-user',
      '/link-social',
      '/unlink-account',
      '/verify-password',
      '/passkey/update-passkey',
      '/two-factor/generate-backup-codes',
      '/two-factor/send-otp',
      '/sign-out/',
      '/sign-%6Fut',
    ]) {
      const body = { name: 'Mallory' };
      const answer = await call(api, 'POST', `/console/auth${path}`, { headers, body });
      assert.equal(answer.status, 404, path);
    }
    assert.equal((await call(api, 'GET', '/v1/session', { headers: { cookie } })).status, 200);
  });
});
