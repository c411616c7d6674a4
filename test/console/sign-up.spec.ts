/** Who may sign up, by the setting SIGN_UP, and with which addresses. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { startApi, until, type Server } from '../support/stack.ts';

const signUp = (at: Server, email: unknown) =>
  call(at, 'POST', '/console/auth/sign-up', { body: { email }, headers: { origin: at.url } });

describe('signing up', () => {
  let api: TestApi;
  let open: Server;
  let closed: Server;
  let invited: Server;

  before(async () => {
    api = await startTestApi();
    const env = { ...api.env, DEV_MAIL: 'true' };
    [open, closed, invited] = await Promise.all([
      startApi({ env }),
      startApi({ env: { ...env, SIGN_UP: 'closed' } }),
      startApi({ env: { ...env, SIGN_UP: 'invited' } }),
    ]);
  });
  after(async () => {
    await Promise.all([open, closed, invited].map((each) => each?.stop()));
    await api?.stop();
  });

  async function isMailed(email: string): Promise<boolean> {
    const { rowCount } = await api.sql.query('select from console.mails where recipient = $1', [
      email,
    ]);
    return (rowCount ?? 0) > 0;
  }

  it('creates no account while it is closed, and only operators’ accounts while it is by invitation', async () => {
    const email = 'closed@example.com';
    assert.equal((await signUp(closed, email)).status, 403);
    const guest = await api.createAccount(7);
    for (const address of ['stranger@example.com', guest.email]) {
      assert.equal((await signUp(invited, address)).status, 200);
    }
    await until(() => isMailed(guest.email));
    assert.equal(await isMailed('stranger@example.com'), false);
    assert.equal(await isMailed(email), false);
  });

  for (const email of [
    '',
    'x',
    'a@b',
    `${'a'.repeat(100_000)}@example.com`,
    'a@example.com\nBcc: b@c.de',
    7,
  ]) {
    it(`sends no email to ${JSON.stringify(email).slice(0, 30)}`, async () => {
      const { status } = await signUp(open, email);
      assert.ok([400, 413].includes(status), String(status));
    });
  }
});
