/** Receipts over HTTP: anyone with a key may verify one; developers get keys to verify offline. */
import assert from 'node:assert/strict';
import { createHmac, createPublicKey, randomUUID, verify as verifySignature } from 'node:crypto';
import { verifyPublicReceipt } from '@farebox/client';
import { wireId } from '../../../src/domain/ids.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import {
  PublicKeysReply,
  PublicReceiptReply,
  ReceiptKeysReply,
  VerifyReply,
} from '../../../src/schemas/receipts.ts';
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

  it('shows what a receipt states, to anyone who has it', async () => {
    const stranger = await api.createAccount(0);
    for (const key of [account.consumerKey, stranger.consumerKey, stranger.developerKey]) {
      const { valid, keyId, charge } = bodyOf(await verify({ receipt }, key), 200, VerifyReply);
      assert.deepEqual([valid, keyId], [true, '1']);
      assert.deepEqual([charge?.tool, charge?.amount], ['search', 0.02]);
    }
  });

  it('shows nothing of an invalid receipt', async () => {
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
      // JSON objects that cannot be converted to a string.
      ...['id', 'consumerId', 'developerId'].map((name) => {
        const said = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
        const hostile = JSON.stringify({ ...said, [name]: { toString: 1, valueOf: 1 } });
        return `${algorithm}.${id}.${Buffer.from(hostile).toString('base64url')}.${mac}`;
      }),
    ];
    for (const forgery of forgeries) {
      assert.deepEqual(bodyOf(await verify({ receipt: forgery }), 200, VerifyReply), {
        valid: false,
        recorded: false,
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

  it('gives a developer the key that verifies its receipts offline', async () => {
    const [{ id, key }] = (await keysOf(account)) as [{ id: string; key: string }];
    assert.equal(id, receipt.split('.')[1]);
    const [signed, mac] = [receipt.slice(0, -44), receipt.slice(-43)];
    const expected = createHmac('sha256', Buffer.from(key, 'base64url')).update(signed);
    assert.equal(mac, expected.digest('base64url'));
  });

  it('gives every developer different keys', async () => {
    const [mine, theirs] = [await keysOf(account), await keysOf(await api.createAccount(0))];
    assert.notEqual(mine[0]?.key, theirs[0]?.key);
  });

  /** A developer can sign any text with the key that it is given. */
  async function forge(changes: object): Promise<string> {
    const [{ id, key }] = (await keysOf(account)) as [{ id: string; key: string }];
    const said = JSON.parse(Buffer.from(receipt.split('.')[2] ?? '', 'base64url').toString());
    const payload = Buffer.from(JSON.stringify({ ...said, ...changes })).toString('base64url');
    const signed = `hmac_sha256.${id}.${payload}`;
    const mac = createHmac('sha256', Buffer.from(key, 'base64url')).update(signed);
    return `${signed}.${mac.digest('base64url')}`;
  }

  it('confirms no charge that is not in the ledger, even with a valid signature', async () => {
    const victim = await api.createAccount(0);
    for (const changes of [
      { id: wireId('charge', randomUUID()), consumerId: victim.consumerId, micros: 999_999e6 },
      { consumerId: victim.consumerId },
      { micros: 90_000 },
      { tool: 'other' },
      { createdAt: '2020-01-01T00:00:00.000Z' },
    ]) {
      const forged = await forge(changes);
      const answer = bodyOf(await verify({ receipt: forged }), 200, VerifyReply);
      assert.deepEqual([answer.valid, answer.recorded, answer.charge], [false, false, null]);
      assertError(await toPublic(forged), 404, 'not_found', 'receipt');
    }
    const signedRight = bodyOf(
      await verify({ receipt: await forge({ micros: 1 }) }),
      200,
      VerifyReply,
    );
    assert.deepEqual([signedRight.valid, signedRight.keyId], [false, '1']);
    const unchanged = bodyOf(await verify({ receipt: await forge({}) }), 200, VerifyReply);
    assert.equal(unchanged.valid, true);
  });

  const toPublic = (held: string) =>
    call(api, 'POST', '/v1/receipts/public', {
      key: account.consumerKey,
      body: { receipt: held },
    });
  const publicKeys = () => call(api, 'GET', '/v1/receipts/public-keys');

  it('signs for the payer, who needs only the published key to verify', async () => {
    const signed = bodyOf(await toPublic(receipt), 200, PublicReceiptReply).receipt;
    assert.equal(bodyOf(await toPublic(receipt), 200, PublicReceiptReply).receipt, signed);
    assert.equal(bodyOf(await toPublic(signed), 200, PublicReceiptReply).receipt, signed);
    const [algorithm, kid, payload, signature] = signed.split('.') as [
      string,
      string,
      string,
      string,
    ];
    assert.deepEqual([algorithm, payload], ['ed25519', receipt.split('.')[2]]);

    const answer = await publicKeys();
    assert.match(answer.headers.get('cache-control') ?? '', /public, max-age=\d+/);
    const jwk = bodyOf(answer, 200, PublicKeysReply).keys.find((each) => each.kid === kid);
    const key = createPublicKey({ key: { ...jwk }, format: 'jwk' });
    const isSigned = (text: string) =>
      verifySignature(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
    assert.equal(isSigned(`ed25519.${kid}.${payload}`), true);
    assert.equal(isSigned(`ed25519.${kid}.${payload}A`), false);

    const { keys } = bodyOf(answer, 200, PublicKeysReply);
    const { valid, charge: said } = await verifyPublicReceipt(keys, signed);
    assert.deepEqual([valid, said?.amount, said?.tool], [true, 0.02, 'search']);
    const checked = bodyOf(await verify({ receipt: signed }), 200, VerifyReply);
    assert.deepEqual([checked.valid, checked.recorded, checked.charge], [true, true, said]);
    for (const forgery of [
      `${signed.slice(0, -1)}B`,
      signed.replace('ed25519.1', 'ed25519.2'),
      signed.replace(payload, `${payload}A`),
      receipt,
      '',
    ]) {
      assert.equal((await verifyPublicReceipt(keys, forgery)).valid, false);
      if (forgery === receipt) continue;
      assert.equal(bodyOf(await verify({ receipt: forgery }), 200, VerifyReply).valid, false);
    }
  });

  it('publishes no key that can sign', async () => {
    const { keys } = bodyOf(await publicKeys(), 200, PublicKeysReply);
    assert.deepEqual(Object.keys(keys[0] ?? {}).toSorted(), [
      'alg',
      'crv',
      'kid',
      'kty',
      'use',
      'x',
    ]);
  });
});
