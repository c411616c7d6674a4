/** Sign-in while Postgres cannot be reached: nothing has happened, and people may try again. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { assertError, call } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';
import { startApi, type Server } from '../support/stack.ts';

const REQUESTS: readonly (readonly ['GET' | 'POST', string, object?])[] = [
  ['POST', '/sign-in/email', { email: 'you@example.com', password: 'correct horse battery' }],
  ['POST', '/sign-out', {}],
  ['POST', '/sign-up', { email: 'you@example.com' }],
  ['POST', '/request-password-reset', { email: 'you@example.com' }],
  ['POST', '/reset-password', { token: 'a'.repeat(24), newPassword: 'correct horse battery' }],
  ['POST', '/revoke-other-sessions', {}],
  ['GET', '/list-sessions'],
  ['GET', '/passkey/generate-authenticate-options'],
];

describe('the sign-in endpoints without Postgres', () => {
  let api: TestApi;
  let line: FaultyLine;
  let cutOff: Server;

  before(async () => {
    api = await startTestApi();
    const { hostname, port } = new URL(api.databaseUrl);
    line = await startFaultyLine({ host: hostname, port: Number(port) });
    const through = new URL(api.databaseUrl);
    through.host = `127.0.0.1:${line.port}`;
    cutOff = await startApi({ env: { ...api.env, DATABASE_URL: through.href } });
  });
  after(async () => {
    await cutOff?.stop();
    await line?.stop();
    await api?.stop();
  });

  it('answer 503', async () => {
    const { email } = await api.createAccount(0);
    const headers = {
      origin: cutOff.url,
      cookie: await signIn(cutOff, api.databaseUrl, email),
    };
    line.damage({ kind: 'cut' });
    for (const [method, path, body] of REQUESTS) {
      const answer = await call(cutOff, method, `/console/auth${path}`, { body, headers });
      assertError(answer, 503, 'service_unavailable');
    }
    line.mend();
    const session = await call(cutOff, 'GET', '/v1/session', { headers });
    assert.equal(session.status, 200);
  });
});
