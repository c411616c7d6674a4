/** The page behind `topUpUrl`: what anyone with the link can do, and nothing else. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { TopUpLinks } from '../../../src/signing/top-up-links.ts';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { DeveloperReply } from '../../../src/schemas/developers.ts';
import { readMasterSecrets } from '../../../src/read-setting.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { startApi } from '../../support/stack.ts';
import { testSideOf } from '../../support/test-mode.ts';

describe('the page of a top-up link', () => {
  let api: TestApi;
  let account: TestAccount;
  let topUpUrl: string;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(0.5);
    const refused = await charge(api, account, { amount: 13.2 });
    topUpUrl = (refused.body as { error: { topUpUrl: string } }).error.topUpUrl;
  });
  after(() => api.stop());

  const submit = (form: Record<string, string>, at: { readonly url: string } = api) =>
    fetch(`${at.url}/top-up`, { method: 'POST', body: new URLSearchParams(form) });

  it('suggests the shortfall, rounded up, and shows nothing of the account', async () => {
    const page = await fetch(topUpUrl);
    assert.equal(page.status, 200);
    const text = await page.text();
    assert.match(text, /Pay \$13\.00/);
    assert.ok(!text.includes(account.consumerId));
    // The link is in the form, and may have any digits.
    const link = new URL(topUpUrl).searchParams.get('link') ?? '';
    assert.ok(!text.replaceAll(link, '').includes('0.5'));
    assert.equal(page.headers.get('set-cookie'), null);
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
    assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
  });

  it('cannot be used as a key', async () => {
    const key = new URL(topUpUrl).searchParams.get('link') ?? '';
    assertError(await call(api, 'GET', '/v1/balance', { key }), 401, 'invalid_api_key');
    const headers = { cookie: `farebox_top_up=${key}`, 'x-service-key': key };
    assertError(await call(api, 'GET', '/v1/balance', { headers }), 401, 'invalid_api_key');
  });

  it('answers 404 to links that are forged, expired, or missing', async () => {
    const secrets = readMasterSecrets(api.env);
    let nowMs = Date.now();
    const links = new TopUpLinks(secrets, api.url, { nowMs: () => nowMs });
    const nobody = links.urlFor(randomUUIDv7(), undefined, asMicros(1));
    for (const url of [`${api.url}/top-up`, `${api.url}/top-up?link=x`, `${topUpUrl}x`]) {
      assert.equal((await fetch(url)).status, 404, url);
    }
    const consumerId = uuidOf('consumer', account.consumerId) ?? '';
    nowMs -= 3_601_000;
    const expired = links.urlFor(consumerId, undefined, asMicros(1));
    const gone = await fetch(expired);
    assert.equal(gone.status, 404);
    assert.match(await gone.text(), /This link has expired/);
    for (const url of [expired, nobody, `${topUpUrl}x`]) {
      const link = new URL(url).searchParams.get('link') ?? '';
      assert.equal((await submit({ link, amount: '5' })).status, 404);
    }
  });

  it('sets a cookie for its own path, and over TLS one that no page without TLS can set', async () => {
    const { holder } = await testSideOf(api, api.databaseUrl, await api.createAccount(0));
    const links = new TopUpLinks(readMasterSecrets(api.env), api.url, { nowMs: Date.now });
    const url = new URL(links.urlFor(holder.consumerId, undefined, asMicros(1)));
    const form = { link: url.searchParams.get('link') ?? '', amount: '5' };
    const secure = await startApi({ env: { ...api.env, BASE_URL: 'https://pay.example.com' } });
    try {
      for (const [at, pattern] of [
        [api, /^farebox_(\w+)=\S+; Path=\/top-up; HttpOnly; SameSite=Lax; Max-Age=\d+$/],
        [
          secure,
          /^__Secure-farebox_(\w+)=\S+; Path=\/top-up; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/,
        ],
      ] as const) {
        const page = await submit(form, at);
        const setCookie = page.headers.get('set-cookie') ?? '';
        const [, id = ''] = pattern.exec(setCookie) ?? assert.fail(setCookie);
        const [cookie = ''] = setCookie.split(';');
        const result = await fetch(`${at.url}/top-up?id=${id}&result=paid`, {
          headers: { cookie },
        });
        assert.match(await result.text(), /The top-up of \$5\.00 was paid/);
      }
    } finally {
      await secure.stop();
    }
  });

  it('shows the result to a browser whose cookie was tampered with', async () => {
    const link = new URL(topUpUrl).searchParams.get('link') ?? '';
    const id = wireId('topUp', randomUUIDv7());
    for (const tail of ['~%E0%A4%A', '~%', '', '~&', '~~']) {
      const headers = { cookie: `farebox_${id}=${link}${tail}` };
      const page = await fetch(`${api.url}/top-up?id=${id}&result=paid`, { headers });
      assert.equal(page.status, 200, tail);
    }
  });

  for (const amount of ['', '0', '4.99', '5.001', '-5', 'NaN', '1e9', 'ten', '9'.repeat(4_000)]) {
    it(`refuses the amount "${amount.slice(0, 10)}" and explains the limits`, async () => {
      const link = new URL(topUpUrl).searchParams.get('link') ?? '';
      const answer = await submit({ link, amount });
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), /at least \$5\.00/);
    });
  }

  /** A checkout that is open, and the cookie of the browser that opened it. */
  async function openedCheckout() {
    const link = new URL(topUpUrl).searchParams.get('link') ?? '';
    const topUpId = randomUUIDv7();
    await api.sql.query(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros, opened_at)
       select $1, a.ledger, a.consumer_id, a.id, 'checkout', 7000000, now()
       from farebox.accounts a where a.consumer_id = $2`,
      [topUpId, uuidOf('consumer', account.consumerId)],
    );
    const id = wireId('topUp', topUpId);
    return { topUpId, id, headers: { cookie: `farebox_${id}=${link}~` } };
  }

  it('reloads less and less often while a payment is pending, and no more after ten minutes', async () => {
    const { id, headers } = await openedCheckout();
    const pauses: number[] = [];
    let url = new URL(`${api.url}/top-up?id=${id}&result=paid`);
    for (;;) {
      const text = await (await fetch(url, { headers })).text();
      assert.match(text, /Payment processing/);
      assert.match(text, /Check again<\/a>/);
      const next = /http-equiv="refresh" content="(\d+);url=([^"]*)"/.exec(text);
      if (!next) break;
      pauses.push(Number(next[1]));
      url = new URL((next[2] ?? '').replaceAll('&#38;', '&'), url);
    }
    assert.equal(pauses[0], 1);
    assert.deepEqual(
      pauses,
      pauses.toSorted((a, b) => a - b),
    );
    const seconds = pauses.reduce((sum, each) => sum + each, 0);
    assert.ok(seconds > 500 && seconds < 700, String(seconds));
  });

  it('says that a payment was made when its checkout is canceled in another tab', async () => {
    const { id, headers, topUpId } = await openedCheckout();
    const canceled = async () =>
      (await fetch(`${api.url}/top-up?id=${id}&result=canceled`, { headers })).text();
    const open = await canceled();
    assert.match(open, /No payment has arrived. If you paid in another tab/);
    assert.doesNotMatch(open, /Nothing was paid|has not changed/);
    const elsewhere = await fetch(`${api.url}/top-up?id=${id}&result=canceled`);
    assert.doesNotMatch(await elsewhere.text(), /Nothing was paid|has not changed/);
    await api.sql.query(
      `update farebox.top_ups set status = 'completed', completed_at = now() where id = $1`,
      [topUpId],
    );
    assert.match(await canceled(), /The top-up of \$7\.00 was paid/);
    assert.doesNotMatch(await canceled(), /Nothing was paid|No payment/);
  });

  it('returns people to the page that the link asks for, if it has the registered origin', async () => {
    const { id } = await openedCheckout();
    const link = new URL(topUpUrl).searchParams.get('link') ?? '';
    const home = 'https://chat.example.com/';
    const { developerKey: key } = account;
    const registered = await call(api, 'PATCH', '/v1/developer', {
      key,
      body: { returnUrl: home },
    });
    assert.equal(registered.status, 200);
    const returnOf = async (asked: string) => {
      const headers = { cookie: `farebox_${id}=${link}~${encodeURIComponent(asked)}` };
      const page = await fetch(`${api.url}/top-up?id=${id}&result=canceled`, { headers });
      return /href="([^"]*)"[^>]*>Return to /.exec(await page.text())?.[1];
    };
    for (const asked of [`${home}~ann/chat`, `${home}~ann/~chat~`, `${home}chat?with=ann#last`]) {
      assert.equal(await returnOf(asked), asked);
    }
    for (const asked of [
      `blob:${home}chat`,
      'http://chat.example.com/',
      `${home.slice(0, -1)}:8443/`,
      '',
    ]) {
      assert.equal(await returnOf(asked), home, asked);
    }
  });

  it('says that nothing was paid once the checkout has ended', async () => {
    const { id, headers, topUpId } = await openedCheckout();
    await api.sql.query(`update farebox.top_ups set status = 'expired' where id = $1`, [topUpId]);
    const answer = await fetch(`${api.url}/top-up?id=${id}&result=canceled`, { headers });
    assert.match(await answer.text(), /Nothing was paid/);
  });

  it('does not say that a payment was received before it is: a bank debit takes days', async () => {
    const { id, headers } = await openedCheckout();
    const page = await (await fetch(`${api.url}/top-up?id=${id}&result=paid`, { headers })).text();
    assert.match(page, /Payment processing/);
    // Another browser is told neither the amount nor whether it was paid.
    const elsewhere = await (await fetch(`${api.url}/top-up?id=${id}&result=paid`)).text();
    assert.match(elsewhere, /Payment processing/);
    assert.doesNotMatch(elsewhere, /\$|http-equiv="refresh"/);
    assert.doesNotMatch(page, /received/);
  });

  it('says that nothing was paid when no checkout can be opened', async () => {
    const link = new URL(topUpUrl).searchParams.get('link') ?? '';
    const answer = await submit({ link, amount: '5', returnUrl: '"><script>alert(1)</script>' });
    assert.equal(answer.status, 503);
    const text = await answer.text();
    assert.match(text, /Nothing was paid/);
    assert.ok(!text.includes('<script>'));
  });

  it('accepts https pages and pages on this machine as return URLs, and nothing else', async () => {
    const key = account.developerKey;
    const set = (returnUrl: unknown) =>
      call(api, 'PATCH', '/v1/developer', { key, body: { returnUrl } });
    for (const url of ['https://chat.example/done?x=1', 'http://localhost:3000/', null]) {
      assert.equal(bodyOf(await set(url), 200, DeveloperReply).returnUrl, url);
    }
    const bad = [
      'javascript:alert(1)',
      'http://chat.example/',
      '//chat.example',
      'https://a:b@c.example',
      // 4,020 characters once they are encoded, as they are stored.
      `https://x.example/${'é'.repeat(667)}`,
    ];
    for (const url of [...bad, '', 'https://x.example/'.padEnd(2_001, 'x'), 7]) {
      assertError(await set(url), 400, 'invalid_request', 'returnUrl');
    }
    const read = await call(api, 'GET', '/v1/developer', { key });
    assert.equal(bodyOf(read, 200, DeveloperReply).returnUrl, null);
    const asConsumer = await call(api, 'GET', '/v1/developer', { key: account.consumerKey });
    assertError(asConsumer, 401, 'invalid_secret_key');
  });
});
