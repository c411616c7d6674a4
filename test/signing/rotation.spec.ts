/**
 * A master secret is rotated in two steps: every process knows the new one before any signs with it. Then the old one
 * is retired. Each process of these tests has the list of one step, and all share a database.
 */
import assert from 'node:assert/strict';
import { verifyPublicReceipt } from '@farebox/client';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { NewKeyReply } from '../../src/schemas/keys.ts';
import {
  PublicKeysReply,
  PublicReceiptReply,
  ReceiptKeysReply,
  VerifyReply,
} from '../../src/schemas/receipts.ts';
import { NewWebhookEndpointReply } from '../../src/schemas/webhook-endpoints.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { endAll } from '../support/end-all.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';
import { authBodyOf, cookiesOf, mailedToken, signIn } from '../support/sessions.ts';
import { startApi, type Server } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const OLD = 'o'.repeat(32);
const NEW = 'n'.repeat(32);
const PASSWORD = 'correct horse battery';

describe('a rotation of the master secret', () => {
  let api: TestApi;
  let announced: Server;
  let rotated: Server;
  let retired: Server;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi({ env: { DEV_MAIL: 'true', MASTER_SECRET: OLD } });
    const start = (list: string) => startApi({ env: { ...api.env, MASTER_SECRET: list } });
    announced = await start(`1:${OLD},2:${NEW}`);
    rotated = await start(`2:${NEW},1:${OLD}`);
    retired = await start(`2:${NEW},1-retired:${OLD}`);
    account = await api.createAccount(10);
  });
  after(() =>
    endAll(...[announced, rotated, retired].map((server) => () => server.stop()), () => api.stop()),
  );

  const asks = (server: Server, method: string, path: string, body?: object) =>
    call(server, method, path, { key: account.developerKey, body });
  const receiptOf = async (server: Server, headers = {}) =>
    bodyOf(await charge(server, account, {}, headers), 201, ChargeReply).receipt;
  const verified = async (server: Server, receipt: string) =>
    bodyOf(await asks(server, 'POST', '/v1/receipts/verify', { receipt }), 200, VerifyReply);
  const madePublic = async (server: Server, receipt: string) =>
    bodyOf(await asks(server, 'POST', '/v1/receipts/public', { receipt }), 200, PublicReceiptReply)
      .receipt;
  const keysOf = async (server: Server) => ({
    own: bodyOf(await asks(server, 'GET', '/v1/receipts/keys'), 200, ReceiptKeysReply).keys,
    published: bodyOf(await asks(server, 'GET', '/v1/receipts/public-keys'), 200, PublicKeysReply)
      .keys,
  });

  describe('while only some processes have made the second step', () => {
    it('lets each process verify the receipts of all, and repeat them to the byte', async () => {
      const key = { 'idempotency-key': 'of the second step' };
      for (const server of [announced, rotated]) {
        const receipt = await receiptOf(server);
        assert.equal(numberIn(receipt), server === rotated ? '2' : '1');
        for (const reader of [announced, rotated]) {
          assert.equal((await verified(reader, receipt)).valid, true);
          const shown = await madePublic(reader, receipt);
          assert.equal(numberIn(shown), numberIn(receipt));
          const { published } = await keysOf(reader);
          assert.equal((await verifyPublicReceipt(published, shown)).valid, true);
        }
      }
      const first = await receiptOf(rotated, key);
      assert.equal(await receiptOf(announced, key), first);
    });

    it('keeps owners signed in at each of them', async () => {
      for (const server of [announced, rotated]) {
        const cookie = await signIn(server, api.databaseUrl, account.email);
        for (const reader of [announced, rotated]) {
          const answer = await call(reader, 'GET', '/v1/session', { headers: { cookie } });
          assert.equal(answer.status, 200, JSON.stringify(answer.body));
        }
      }
    });

    it('lets owners start to sign in at one process and enter the code at another', async () => {
      const { secret, email } = await enrolled();
      const half = await auth(announced, '/sign-in/email', { email, password: PASSWORD });
      const code = totp(secret, 1);
      const whole = await auth(rotated, '/two-factor/verify-totp', { code }, cookiesOf(half));
      assert.equal(whole.status, 200, JSON.stringify(whole.body));
    });

    it('keeps top-up links valid at each of them', async () => {
      for (const server of [announced, rotated]) {
        for (const reader of [announced, rotated]) {
          assert.equal(await openedAt(reader, await topUpLinkOf(server)), 200);
        }
      }
    });

    it('shows keys and signing secrets of endpoints again, whichever process made them', async () => {
      for (const [first, second] of [
        [announced, rotated],
        [rotated, announced],
      ] as const) {
        const once = `first at ${first.url}`;
        const endpoint = await endpointOf(first, once);
        assert.equal((await endpointOf(second, once)).secret, endpoint.secret);
        const key = await keyOf(first, once);
        assert.equal(await keyOf(second, once), key);
      }
    });
  });

  describe('after the old one was retired', () => {
    it('still confirms receipts that the ledger has, and lists charges', async () => {
      const key = { 'idempotency-key': 'of a charge before' };
      const receipt = await receiptOf(announced, key);
      assert.equal((await verified(retired, receipt)).valid, true);
      assert.equal(await receiptOf(retired, key), receipt);
      const { published } = await keysOf(retired);
      const old = await madePublic(announced, receipt);
      assert.equal((await verified(retired, old)).valid, true);
      // Offline, everybody would also accept what a thief signs.
      assert.equal((await verifyPublicReceipt(published, old)).valid, false);
      for (const held of [receipt, old]) {
        const again = await madePublic(retired, held);
        assert.equal(numberIn(again), '2');
        assert.equal((await verifyPublicReceipt(published, again)).valid, true);
        assert.equal((await verified(retired, again)).valid, true);
      }
    });

    it('no longer hands out its keys, with which a thief could sign', async () => {
      const { own, published } = await keysOf(retired);
      assert.deepEqual([own.map(({ id }) => id), published.map(({ kid }) => kid)], [['2'], ['2']]);
    });

    it('refuses its sessions and its links', async () => {
      const cookie = await signIn(announced, api.databaseUrl, account.email);
      const answer = await call(retired, 'GET', '/v1/session', { headers: { cookie } });
      assert.equal(answer.status, 401);
      assert.equal(await openedAt(retired, await topUpLinkOf(announced)), 404);
    });

    it('still reads seeds of two-factor authentication', async () => {
      const { secret, email } = await enrolled();
      const half = await auth(retired, '/sign-in/email', { email, password: PASSWORD });
      const code = totp(secret, 1);
      const whole = await auth(retired, '/two-factor/verify-totp', { code }, cookiesOf(half));
      assert.equal(whole.status, 200, JSON.stringify(whole.body));
    });

    it('still shows keys and signing secrets that it derived, to the caller that made them', async () => {
      const endpoint = await endpointOf(announced, 'before it was retired');
      const again = await endpointOf(retired, 'before it was retired');
      assert.equal(again.secret, endpoint.secret);
      const key = await keyOf(announced, 'before it was retired');
      assert.equal(await keyOf(retired, 'before it was retired'), key);
    });
  });

  it('says that it cannot show a signing secret again once the master secret was removed', async () => {
    await endpointOf(announced, 'before it was removed');
    const removed = await startApi({
      env: { ...api.env, MASTER_SECRET: `2:${NEW}` },
    });
    try {
      const body = { url: 'https://example.com/events' };
      const headers = once('before it was removed');
      const again = await call(removed, 'POST', '/v1/webhook-endpoints', { headers, body });
      assertError(again, 422, 'idempotency_key_reused');
      assert.match(JSON.stringify(again.body), /The secret .* cannot be shown again/);
    } finally {
      await removed.stop();
    }
  });

  async function topUpLinkOf(server: Server): Promise<string> {
    const refused = await charge(server, account, { amount: 1_000 });
    const { error } = refused.body as { error: { topUpUrl: string } };
    return error.topUpUrl;
  }

  const once = (key: string) => ({
    authorization: `Bearer ${account.developerKey}`,
    'idempotency-key': key,
  });

  async function endpointOf(server: Server, key: string) {
    const answer = await call(server, 'POST', '/v1/webhook-endpoints', {
      headers: once(key),
      body: { url: 'https://example.com/events' },
    });
    return bodyOf(answer, 201, NewWebhookEndpointReply);
  }

  /** A key that a request with an idempotency key creates, or shows again. */
  async function keyOf(server: Server, key: string): Promise<string> {
    const cookie = await signIn(server, api.databaseUrl, account.email);
    const answer = await call(server, 'POST', '/v1/keys', {
      headers: { cookie, origin: server.url, 'idempotency-key': key },
      body: { kind: 'developer', name: key },
    });
    return bodyOf(answer, 201, NewKeyReply).key;
  }

  /** A person with a second factor that was turned on before the rotation. */
  async function enrolled() {
    await api.sql.query('delete from console.rate_limits');
    const email = `${crypto.randomUUID()}@example.com`;
    await auth(announced, '/sign-up', { email });
    const token = await mailedToken(api.sql, email);
    await auth(announced, '/reset-password', { token, newPassword: PASSWORD });
    const cookie = await signIn(announced, api.databaseUrl, email);
    const enabled = await auth(announced, '/two-factor/enable', { password: PASSWORD }, cookie);
    const { totpURI } = authBodyOf(enabled) as { totpURI: string };
    const secret = new URL(totpURI).searchParams.get('secret') ?? '';
    const on = await auth(announced, '/two-factor/verify-totp', { code: totp(secret) }, cookie);
    assert.equal(on.status, 200, JSON.stringify(on.body));
    return { email, secret };
  }
});

function numberIn(receipt: string): string | undefined {
  return receipt.split('.')[1];
}

async function openedAt(server: Server, link: string): Promise<number> {
  const { pathname, search } = new URL(link);
  return (await fetch(`${server.url}${pathname}${search}`)).status;
}

function auth(server: Server, path: string, body: object, cookie = '') {
  const headers = { origin: server.url, ...(cookie && { cookie }) };
  return call(server, 'POST', `/console/auth${path}`, { body, headers });
}
