/** The page behind a link that signs in: only its button does. */
import assert from 'node:assert/strict';
import { openTestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { signInLink, useSignInLink } from '../support/sessions.ts';

describe('the page of a sign-in link', () => {
  const api = openTestApi();

  it('signs somebody in only when they press its button, which no other site can press', async () => {
    const { email } = await api.createAccount(0);
    const link = await signInLink(api, api.databaseUrl, email);
    // As mail scanners and chats do.
    for (const method of ['GET', 'HEAD', 'GET']) {
      const page = await fetch(link, { method, redirect: 'manual' });
      assert.equal(page.status, 200);
      assert.deepEqual(page.headers.getSetCookie(), []);
      assert.equal(page.headers.get('referrer-policy'), 'strict-origin');
      const policy = page.headers.get('content-security-policy') ?? '';
      assert.match(policy, /form-action 'self'/);
      assert.match(policy, /frame-ancestors 'none'/);
      assert.equal(page.headers.get('cache-control'), 'no-store');
    }
    for (const origin of ['https://elsewhere.example', 'null', '']) {
      const foreign = await useSignInLink(link, { origin });
      assert.equal(foreign.status, 403, origin);
      assert.deepEqual(foreign.headers.getSetCookie(), []);
      assert.match(await foreign.text(), /<p role="alert">This form did not come from a page/);
    }
    const entered = await useSignInLink(link);
    assert.equal(entered.headers.get('location'), '/console/');
    const cookie = entered.headers.getSetCookie().join('; ');
    assert.equal((await call(api, 'GET', '/v1/session', { headers: { cookie } })).status, 200);
  });

  it('shows no markup of a token that is none, and signs nobody in by it', async () => {
    const link = `${api.url}/console/auth/sign-in-link`;
    const page = await fetch(`${link}?token=${encodeURIComponent('"><script>')}`);
    assert.match(await page.text(), / value="&#34;&#62;&#60;script&#62;">/);
    for (const [query, status] of [
      ['', 302],
      ['?token=%00', 302],
      ['?token=%ed%a0%80', 302],
      ['?token=%ff', 302],
      [`?token=${'a'.repeat(101)}`, 400],
      [`?token=${'a'.repeat(9_000)}`, 413],
    ] as const) {
      const answer = await useSignInLink(link + query);
      assert.equal(answer.status, status, query.slice(0, 20));
      assert.deepEqual(answer.headers.getSetCookie(), []);
    }
  });
});
