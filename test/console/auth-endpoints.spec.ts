/** Only the endpoints of the sign-in library that the console uses can be reached. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { assertError, call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';

describe('the endpoints of the console', () => {
  let api: TestApi;

  before(async () => {
    // In a process of its own, whose output is all in its log.
    api = await startTestApiProcesses();
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

  it('do not fail, and log nothing, when a request names a host that is none', async () => {
    for (const host of ['a b', '[::bad', '%']) {
      const request = get(`${api.url}/console/auth/get-session`, { headers: { host } });
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      answer.resume();
      assert.equal(answer.statusCode, 200, host);
    }
    assert.doesNotMatch(await readFile(api.logFile, 'utf8'), /Failed to parse URL/);
  });

  it('answer a request for a whole URL, as HTTP allows', async () => {
    const path = 'http://elsewhere.example/console/auth/get-session?disableRefresh=true';
    const { hostname, port } = new URL(api.url);
    const request = get({ hostname, port, path });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    answer.resume();
    assert.equal(answer.statusCode, 200);
  });

  it('write only lines of JSON to the log, even when they refuse', async () => {
    const body = { token: 'none', newPassword: 'password1234' };
    const headers = { origin: api.url };
    const answer = await call(api, 'POST', '/console/auth/reset-password', { headers, body });
    assert.equal(answer.status, 400);
    const lines = (await readFile(api.logFile, 'utf8')).trim().split('\n');
    assert.ok(lines.length > 0);
    for (const line of lines) assert.doesNotThrow(() => JSON.parse(line) as unknown, line);
  });

  it('answer and log a failure once, as JSON', async () => {
    const rename = (from: string, to: string) =>
      api.sql.query(`alter table console.${from} rename to ${to}`);
    const body = { token: 'none', newPassword: 'another password 1234' };
    const headers = { origin: api.url };
    const lines = async () => (await readFile(api.logFile, 'utf8')).trim().split('\n');
    const { length: before } = await lines();
    await rename('verifications', 'away');
    try {
      const answer = await call(api, 'POST', '/console/auth/reset-password', { headers, body });
      assertError(answer, 500, 'internal_error');
    } finally {
      await rename('away', 'verifications');
    }
    const logged = (await lines())
      .slice(before)
      .map((line) => JSON.parse(line) as { level: number });
    assert.equal(logged.filter(({ level }) => level >= 50).length, 1);
  });
});
