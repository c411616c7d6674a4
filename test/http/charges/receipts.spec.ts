/** Receipts over HTTP: anybody with a key may ask whether one holds; developers get keys to check alone. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { ReceiptKeysReply, VerifyReply } from '../../../src/schemas/receipts.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';

describe('/v1/receipts', () => {
  let api: TestApi;
  let account: TestAccount;
  let receipt: string;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
    receipt = bodyOf(await charge(api, account), 201, ChargeReply).receipt;
  });
  after(() => api.stop());

  const verify = (body: unknown, key = account.developerKey) =>
    call(api, 'POST', '/v1/receipts/verify', { key, body });
  const keysOf = async ({ developerKey }: TestAccount) =>
    bodyOf(
      await call(api, 'GET', '/v1/receipts/keys', { key: developerKey }),
      200,
      ReceiptKeysReply,
    ).keys;

  it('says what a receipt says, to whoever holds it', async () => {
    const stranger = await api.createAccount(0);
    for (const key of [account.consumerKey, stranger.consumerKey, stranger.developerKey]) {
      const { valid, keyId, charge } = bodyOf(await verify({ receipt }, key), 200, VerifyReply);
      assert.deepEqual([valid, keyId], [true, '1']);
      assert.deepEqual([charge?.tool, charge?.amount], ['search', 0.02]);
    }
  });

  it('shows nothing of a receipt that does not hold', async () => {
    const [algorithm, id, payload, mac] = receipt.split('.') as [string, string, string, string];
    const richer = Buffer.from(payload, 'base64url').toString().replace('20000', '90000');
    const forgeries = [
      `${algorithm}.${id}.${Buffer.from(richer).toString('base64url')}.${mac}`,
      `${algorithm}.${id}.${payload}.${mac.slice(0, -1)}`,
      `${algorithm}.2.${payload}.${mac}`,
      `${receipt} `,
      receipt.toUpperCase(),
      'hmac_sha256',
      '',
      '\0',
      '\ud800',
      'x'.repeat(4_000),
    ];
    for (const forgery of forgeries) {
      assert.deepEqual(bodyOf(await verify({ receipt: forgery }), 200, VerifyReply), {
        valid: false,
        keyId: null,
        charge: null,
      });
    }
  });

  for (const bad of [undefined, null, 1, [], {}, 'x'.repeat(4_001)]) {
    it(`refuses the receipt ${JSON.stringify(bad)?.slice(0, 20) ?? 'left out'}`, async () => {
      assertError(await verify({ receipt: bad }), 400, 'invalid_request', 'receipt');
    });
  }

  it('gives a developer the key with which its receipts verify offline', async () => {
    const [{ id, key }] = (await keysOf(account)) as [{ id: string; key: string }];
    assert.equal(id, receipt.split('.')[1]);
    const [signed, mac] = [receipt.slice(0, -44), receipt.slice(-43)];
    const expected = createHmac('sha256', Buffer.from(key, 'base64url')).update(signed);
    assert.equal(mac, expected.digest('base64url'));
  });

  it('gives every developer other keys', async () => {
    const [mine, theirs] = [await keysOf(account), await keysOf(await api.createAccount(0))];
    assert.notEqual(mine[0]?.key, theirs[0]?.key);
  });
});
