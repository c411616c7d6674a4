/** Receipts of the real API, verified by the client without a request for each. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Farebox, type FareboxOptions, type ReceiptKey } from '@farebox/client';
import { startApi, startStack, type Stack } from '../support/stack.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { read } from '../support/http.ts';
import { CountingProxy } from './counting-proxy.ts';

const NOT_VALID = { valid: false, charge: null };
const NOBODY_LISTENS = 'http://127.0.0.1:9';
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const [OLD_SECRET, NEW_SECRET] = [1, 2].map(() => randomBytes(32).toString('base64url'));

describe('client: receipts', () => {
  let stack: Stack;
  let account: TestAccount;
  let receipt: string;

  before(async () => {
    stack = await startStack({ env: { MASTER_SECRET: `1:${OLD_SECRET}` } });
    account = await createAccount(stack.env, 100);
    receipt = await charged(account);
  });
  after(() => stack?.stop());

  const client = (options: FareboxOptions = {}, { developerKey } = account) =>
    new Farebox({ secretKey: developerKey, baseUrl: stack.api.url, ...options });

  const charged = async (of: TestAccount, options: FareboxOptions = {}) => {
    const request = { apiKey: of.consumerKey, tool: 'search', amount: 0.25 };
    return (await client(options, of).charge(request)).receipt;
  };

  const keysOf = async ({ developerKey }: TestAccount) => {
    const url = `${stack.api.url}/v1/receipts/keys`;
    return (await read<{ keys: ReceiptKey[] }>(url, developerKey)).keys;
  };

  it('are valid, and state the charge as the service does', async () => {
    const check = await client().verifyReceipt(receipt);
    assert.equal(check.valid, true);
    const { consumerId, developerId } = account;
    assert.partialDeepStrictEqual(check.charge, { consumerId, developerId, amount: 0.25 });
    const response = await fetch(`${stack.api.url}/v1/receipts/verify`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${account.consumerKey}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ receipt }),
    });
    assert.partialDeepStrictEqual(await response.json(), check);
  });

  it('are verified offline when the keys are given', async () => {
    const offline = client({ baseUrl: NOBODY_LISTENS, receiptKeys: await keysOf(account) });
    assert.equal((await offline.verifyReceipt(receipt)).valid, true);
    assert.deepEqual(await offline.verifyReceipt(receipt.replace('.1.', '.2.')), NOT_VALID);
  });

  it('may have any text as the tool’s name', async () => {
    const request = { apiKey: account.consumerKey, tool: 'Übersetzen → 翻译 🦦', amount: 0.000001 };
    const check = await client().verifyReceipt((await client().charge(request)).receipt);
    assert.partialDeepStrictEqual(check.charge, { tool: request.tool, amount: 0.000001 });
  });

  it('are invalid with any one character changed', async () => {
    const farebox = client({ receiptKeys: await keysOf(account) });
    for (let at = 0; at < receipt.length; at += 1) {
      const character = receipt.charAt(at);
      const other = BASE64URL[(BASE64URL.indexOf(character) + 1) % 64];
      const forged = receipt.slice(0, at) + other + receipt.slice(at + 1);
      assert.deepEqual(await farebox.verifyReceipt(forged), NOT_VALID, forged);
    }
    for (const last of BASE64URL) {
      const spelled = receipt.slice(0, -1) + last;
      assert.equal((await farebox.verifyReceipt(spelled)).valid, spelled === receipt, spelled);
    }
  });

  it('are invalid when truncated, extended or missing', async () => {
    const farebox = client({ receiptKeys: await keysOf(account) });
    for (let end = 0; end < receipt.length; end += 1) {
      assert.deepEqual(await farebox.verifyReceipt(receipt.slice(0, end)), NOT_VALID);
    }
    for (const odd of [
      `${receipt}=`,
      `${receipt}\n`,
      ` ${receipt}`,
      `${receipt}.A`,
      receipt + receipt,
    ]) {
      assert.deepEqual(await farebox.verifyReceipt(odd), NOT_VALID);
    }
    for (const none of [undefined, null, 7, {}, [receipt], Symbol('receipt')]) {
      assert.deepEqual(await farebox.verifyReceipt(none as never), NOT_VALID);
    }
  });

  it('are invalid when the payload under the signature is replaced', async () => {
    const [scheme, keyId, payload = '', signature] = receipt.split('.');
    const said = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const dearer = Buffer.from(JSON.stringify({ ...said, micros: 1 })).toString('base64url');
    const forged = [scheme, keyId, dearer, signature].join('.');
    assert.deepEqual(await client().verifyReceipt(forged), NOT_VALID);
  });

  it('are invalid when they are from another developer', async () => {
    const other = await createAccount(stack.env, 100);
    const theirs = await charged(other);
    assert.deepEqual(await client().verifyReceipt(theirs), NOT_VALID);
    assert.equal((await client({}, other).verifyReceipt(theirs)).valid, true);
  });

  it('cost one request for the keys, and few more for unknown key ids', async () => {
    await using proxy = await CountingProxy.start(stack.api.url);
    const farebox = client({ baseUrl: proxy.url });
    const checks = Array.from({ length: 20 }, () => farebox.verifyReceipt(receipt));
    for (const { valid } of await Promise.all(checks)) assert.equal(valid, true);
    assert.deepEqual(proxy.requests, ['GET /v1/receipts/keys']);
    const forge = async (keyId: number) => {
      const forged = receipt.replace('.1.', `.${keyId}.`);
      assert.deepEqual(await farebox.verifyReceipt(forged), NOT_VALID);
    };
    await Promise.all([forge(7), forge(8)]);
    await forge(9);
    assert.equal(proxy.requests.length, 2);

    const now = performance.now.bind(performance);
    performance.now = () => now() + 60_000;
    try {
      await forge(10);
      await forge(11);
    } finally {
      performance.now = now;
    }
    assert.equal(proxy.requests.length, 3);
  });

  it('raise when the keys cannot be loaded, and are valid once they can', async () => {
    const stranger = client({ secretKey: 'fare_sk_live_x' });
    await assert.rejects(stranger.verifyReceipt(receipt), { code: 'invalid_secret_key' });
    const own = await startApi({ env: { ...stack.env, PORT: undefined } });
    await own.stop();
    const farebox = client({ baseUrl: own.url, maxRetries: 0 });
    await assert.rejects(farebox.verifyReceipt(receipt), { code: 'service_unavailable' });
    const again = await startApi({ env: { ...stack.env, PORT: new URL(own.url).port } });
    try {
      assert.equal((await farebox.verifyReceipt(receipt)).valid, true);
    } finally {
      await again.stop();
    }
  });

  const start = (secrets: string, port?: string) =>
    startApi({ env: { ...stack.env, MASTER_SECRET: secrets, PORT: port } });

  it('stay valid after the master secret was rotated, old ones and new ones', async () => {
    let api = await start(`1:${OLD_SECRET}`);
    try {
      const options = { baseUrl: api.url };
      const farebox = client(options);
      const old = await charged(account, options);
      assert.match(old, /^hmac_sha256\.1\./);
      assert.equal((await farebox.verifyReceipt(old)).valid, true);
      await api.stop();
      api = await start(`2:${NEW_SECRET},1:${OLD_SECRET}`, new URL(api.url).port);
      const fresh = await charged(account, options);
      assert.match(fresh, /^hmac_sha256\.2\./);
      for (const verifier of [farebox, client(options)]) {
        assert.equal((await verifier.verifyReceipt(old)).valid, true);
        assert.equal((await verifier.verifyReceipt(fresh)).valid, true);
      }
    } finally {
      await api.stop();
    }
  });

  it('need keys in the form that the service gives', () => {
    for (const receiptKeys of [
      'key',
      [{}],
      [{ id: 1, key: 'A'.repeat(43) }],
      [{ id: '1', key: 'A' }],
    ]) {
      assert.throws(() => client({ receiptKeys: receiptKeys as never }), TypeError);
    }
  });
});
