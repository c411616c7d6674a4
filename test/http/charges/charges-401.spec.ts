/** Who may charge whom: a secret key charges, a consumer's key is charged, nothing else. */
import assert from 'node:assert/strict';
import { composeKey } from '../../../src/domain/api-keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, call, charge } from '../../support/http.ts';

/** Well formed, but unknown. */
const NOBODYS = new Uint8Array(32);

describe('POST /v1/charges: 401', () => {
  let api: TestApi;
  let account: TestAccount;
  let revoked: TestAccount;

  before(async () => {
    api = await startTestApi();
    [account, revoked] = [await api.createAccount(10), await api.createAccount(10)];
    await api.sql.query(
      `update farebox.api_keys k set revoked_at = now(), changed_at = now()
       from farebox.accounts a where a.id = k.account_id and a.email = $1`,
      [revoked.email],
    );
  });
  after(() => api.stop());

  const consumerKeys: Readonly<Record<string, () => unknown>> = {
    'is left out': () => undefined,
    'is empty': () => '',
    'is null': () => null,
    'is a number': () => 1,
    'is an array': () => [account.consumerKey],
    'is an object': () => ({ key: account.consumerKey }),
    'is no key at all': () => 'key',
    'is of nobody': () => composeKey('fare', 'consumer', NOBODYS, 'live'),
    'is the secret key': () => account.developerKey,
    'is a legacy key': () => account.legacyKey,
    'is revoked': () => revoked.consumerKey,
    'has a character changed': () => changed(account.consumerKey),
    'has white space around it': () => ` ${account.consumerKey} `,
    'is in capitals': () => account.consumerKey.toUpperCase(),
    'has 60,000 characters': () => 'fare_ck_live_'.padEnd(60_000, 'x'),
    'has a NUL': () => `${account.consumerKey}\0`,
    'is half a surrogate pair': () => '\ud800',
    'is 1,000 levels deep': () => JSON.parse('['.repeat(1_000) + ']'.repeat(1_000)) as unknown,
  };
  for (const [what, apiKey] of Object.entries(consumerKeys)) {
    it(`answers invalid_api_key when the consumer’s key ${what}`, async () => {
      const answer = await api.changingNothing(() => charge(api, account, { apiKey: apiKey() }));
      assertError(answer, 401, 'invalid_api_key', 'apiKey');
    });
  }

  it('checks the consumer’s key before the amount', async () => {
    const answer = await charge(api, account, { apiKey: 'x', amount: -1 });
    assertError(answer, 401, 'invalid_api_key', 'apiKey');
  });

  const authorizations: Readonly<Record<string, () => string | undefined>> = {
    'is missing': () => undefined,
    'is empty': () => '',
    'is the scheme alone': () => 'Bearer',
    'has no scheme': () => account.developerKey,
    'is of another scheme': () => `Basic ${account.developerKey}`,
    'is of nobody': () => `Bearer ${composeKey('fare', 'developer', NOBODYS, 'live')}`,
    'is the consumer key': () => `Bearer ${account.consumerKey}`,
    'is the legacy key': () => `Bearer ${account.legacyKey}`,
    'is revoked': () => `Bearer ${revoked.developerKey}`,
    'has a character changed': () => `Bearer ${changed(account.developerKey)}`,
    'has two keys': () => `Bearer ${account.developerKey} ${account.developerKey}`,
    'has 10,000 characters': () => `Bearer ${'x'.repeat(10_000)}`,
  };
  for (const [what, authorization] of Object.entries(authorizations)) {
    it(`answers invalid_secret_key when the authorization ${what}`, async () => {
      const value = authorization();
      const answer = await api.changingNothing(() =>
        call(api, 'POST', '/v1/charges', {
          headers: value === undefined ? {} : { authorization: value },
          body: { apiKey: account.consumerKey, tool: 'search', amount: 0.02 },
        }),
      );
      assertError(answer, 401, 'invalid_secret_key');
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    });
  }

  it('does not parse the body of an unauthenticated request', async () => {
    const answer = await call(api, 'POST', '/v1/charges', { rawBody: '{' });
    assertError(answer, 401, 'invalid_secret_key');
  });

  it('does not show a revoked key in the error', async () => {
    const { consumerKey, developerKey } = revoked;
    const answers = [
      await charge(api, account, { apiKey: consumerKey }),
      await charge(api, { ...account, developerKey }),
    ];
    const said = JSON.stringify(answers.map(({ body }) => body));
    assert.ok(!said.includes(consumerKey) && !said.includes(developerKey));
  });
});

/** The same key with its middle character replaced by another. */
function changed(key: string): string {
  const at = key.length >> 1;
  return key.slice(0, at) + (key[at] === 'a' ? 'b' : 'a') + key.slice(at + 1);
}
