/** Connections to Postgres that go silent instead of breaking: charging recovers by itself. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { BalanceReply } from '../../src/schemas/balance.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';
import { startApi, until, type Server } from '../support/stack.ts';
import { startSwallowingProxy, type SwallowingProxy } from '../support/swallowing-proxy.ts';

const BACK_MS_MAX = 10_000;

describe('connections to Postgres that go silent', () => {
  let direct: TestApi;
  let proxy: SwallowingProxy;
  let proxied: Server;

  before(async () => {
    direct = await startTestApi();
    const url = new URL(direct.databaseUrl);
    proxy = await startSwallowingProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    proxied = await startApi({ env: { ...direct.env, DATABASE_URL: url.href } });
  });
  after(async () => {
    await proxied?.stop();
    await proxy?.stop();
    await direct?.stop();
  });

  it('let charges continue within 10 seconds, and the charge that met the silence is made once', async () => {
    const account = await direct.createAccount(10);
    bodyOf(await charge(proxied, account), 201, ChargeReply);
    const key = randomUUID();
    const keyed = () => charge(proxied, account, {}, { 'idempotency-key': key });
    proxy.swallow();
    const silentSince = performance.now();
    const caught = keyed();
    await until(async () => (await charge(proxied, account)).status === 201, {
      timeoutMs: BACK_MS_MAX,
    });
    const backMs = performance.now() - silentSince;
    assert.ok(backMs < BACK_MS_MAX, `charging came back after ${Math.round(backMs)} ms`);
    const { status } = await caught;
    assert.ok([500, 503].includes(status), `${status}`);
    if (status === 500) assertError(await caught, 500, 'outcome_unknown');
    const settled = bodyOf(await keyed(), 201, ChargeReply);
    assert.deepEqual(bodyOf(await keyed(), 201, ChargeReply), settled);
    await until(async () => (await call(proxied, 'GET', '/readyz')).status === 200);
    bodyOf(
      await call(proxied, 'GET', '/v1/balance', { key: account.consumerKey }),
      200,
      BalanceReply,
    );
    await proveBooks(direct.env, { processor: false });
  }).timeout(60_000);
});
