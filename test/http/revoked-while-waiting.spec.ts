/** Requests whose key is revoked while they wait: for the share of their account, or for their own body. */
import assert from 'node:assert/strict';
import { request as open, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { BalanceReply } from '../../src/schemas/balance.ts';
import { createKey, findAccount } from '../../src/store/accounts/accounts.ts';
import { revokeKey } from '../../src/store/accounts/api-keys.ts';
import type { Database } from '../../src/store/database.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { askKey, makeBudget } from '../support/budget-requests.ts';
import { assertError, bodyOf, call } from '../support/http.ts';
import { keptPool } from '../support/kept-pools.ts';
import { holdConsumer } from '../support/row-locks.ts';
import { until } from '../support/stack.ts';
import { testSideOf } from '../support/test-mode.ts';

interface Key {
  readonly id: string;
  readonly key: string;
}

describe('a request whose key is revoked while it waits', () => {
  let api: TestApi;
  let database: Database;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    database = await keptPool(api.databaseUrl);
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
  });
  after(() => api.stop());

  async function anotherKey(kind: 'consumer' | 'developer'): Promise<Key> {
    const owner = await findAccount(database, { email: account.email });
    assert.ok(owner);
    const holder = { accountId: owner.id, ledger: owner.ledger };
    return createKey(database, 'fare', kind, holder);
  }

  const statusOf = async ({ key }: Key, path: string) =>
    (await call(api, 'GET', path, { key })).status;

  /** Until the API refuses the key, and asks again for those of requests that came before: it trusts them for 90 ms. */
  async function revoke(key: Key, path: string): Promise<void> {
    assert.ok(await revokeKey(database, key));
    const asksAgainAt = performance.now() + 100;
    await until(async () => performance.now() > asksAgainAt && (await statusOf(key, path)) === 401);
  }

  it('creates no spend key', async () => {
    const { consumerKey } = account;
    const { id } = await makeBudget(api, consumerKey);
    const other = await anotherKey('consumer');
    assert.equal(await statusOf(other, '/v1/balance'), 200);
    const held = await holdConsumer(api.databaseUrl, account.consumerId);
    const first = [askKey(api, consumerKey, id), askKey(api, consumerKey, id)];
    await held.waited(2);
    const queued = askKey(api, other.key, id);
    await revoke(other, '/v1/balance');
    await held.release();
    for (const { status } of await Promise.all(first)) assert.equal(status, 201);
    assertError(await queued, 401, 'invalid_api_key');
  });

  it('makes no charges of a batch', async () => {
    const other = await anotherKey('developer');
    assert.equal(await statusOf(other, '/v1/earnings'), 200);
    const member = { apiKey: account.consumerKey, tool: 'search', amount: 0.000001 };
    // As many bytes as an account may have in progress.
    const metadata = { reason: 'x'.repeat(400) };
    const charges = Array.from({ length: 700 }, () => ({ ...member, metadata }));
    const send = (key: string) =>
      call(api, 'POST', '/v1/charges/batch', { key, body: { charges } });
    const held = await holdConsumer(api.databaseUrl, account.consumerId);
    const first = send(account.developerKey);
    await held.waited(1);
    const queued = send(other.key);
    await revoke(other, '/v1/earnings');
    await held.release();
    assert.equal((await first).status, 200);
    assertError(await queued, 401, 'invalid_secret_key');
  });

  it('adds no money', async () => {
    const side = await testSideOf(api, api.databaseUrl, account);
    const other = await createKey(database, 'fare', 'consumer', side.holder);
    const send = (key: string) => call(api, 'POST', '/v1/checkout', { key, body: { amount: 5 } });
    const held = await holdConsumer(api.databaseUrl, side.consumerId);
    const first = [send(side.consumerKey), send(side.consumerKey)];
    await held.waited(2);
    const queued = send(other.key);
    await revoke(other, '/v1/balance');
    await held.release();
    for (const { status } of await Promise.all(first)) assert.equal(status, 201);
    assertError(await queued, 401, 'invalid_api_key');
    const balance = await call(api, 'GET', '/v1/balance', { key: side.consumerKey });
    assert.equal(bodyOf(balance, 200, BalanceReply).balance, 10);
  });

  it('makes no charge when its body arrives late', async () => {
    const other = await anotherKey('developer');
    const { promise: answered, resolve } = Promise.withResolvers<IncomingMessage>();
    const headers = { authorization: `Bearer ${other.key}`, 'content-type': 'application/json' };
    const sending = open(`${api.url}/v1/charges`, { method: 'POST', headers }, resolve);
    const body = { apiKey: account.consumerKey, tool: 'search', amount: 1 };
    sending.write(JSON.stringify(body).slice(0, 10));
    assert.equal(await statusOf(other, '/v1/earnings'), 200);
    await revoke(other, '/v1/earnings');
    sending.end(JSON.stringify(body).slice(10));
    const response = await answered;
    assert.equal(response.statusCode, 401);
    const { error } = (await json(response)) as { readonly error: { readonly code: string } };
    assert.equal(error.code, 'invalid_secret_key');
  });
});
