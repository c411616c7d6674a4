/** Requests whose key is revoked while they wait: for the share of their account, or for their own body. */
import assert from 'node:assert/strict';
import { request as open, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { BalanceReply } from '../../src/schemas/balance.ts';
import { findAccount } from '../../src/store/accounts/accounts.ts';
import { createKey, revokeKey } from '../../src/store/accounts/api-keys.ts';
import type { Database } from '../../src/store/database.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { askKey, makeBudget } from '../support/budget-requests.ts';
import { assertError, bodyOf, call, type Answer } from '../support/http.ts';
import { keptPool } from '../support/kept-pools.ts';
import { holdConsumer, waitedTooLong } from '../support/row-locks.ts';
import { until } from '../support/stack.ts';
import { testSideOf } from '../support/test-mode.ts';

interface Key {
  readonly id: string;
  readonly key: string;
}

interface Waiting {
  readonly consumerId: string;
  /** Keys of the requests that wait for the row. */
  readonly first: readonly string[];
  readonly send: (key: string) => Promise<Answer>;
  readonly newKey: () => Promise<Key>;
  /** What the new key may read. */
  readonly path: string;
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

  /**
   * The answers to requests that wait for the row of their consumer, and to one with another key, which waits for them
   * while its key is revoked. On a busy machine, one of them may wait for longer than it may. Then `refused` has the
   * former, and others are sent.
   */
  async function revokedBehind({ consumerId, first, send, newKey, path }: Waiting) {
    const refused: Answer[] = [];
    for (;;) {
      const other = await newKey();
      assert.equal(await statusOf(other, path), 200);
      const held = await holdConsumer(api.databaseUrl, consumerId);
      const sent = first.map(send);
      await held.waited(first.length, ...sent);
      const queued = send(other.key);
      await revoke(other, path);
      await held.release();
      const [answers, last] = [await Promise.all(sent), await queued];
      const isLate = answers.some(waitedTooLong) || last.status === 429;
      if (!isLate) return { answers, last, refused };
      refused.push(...answers);
    }
  }

  it('creates no spend key', async () => {
    const { consumerId, consumerKey } = account;
    const { id } = await makeBudget(api, consumerKey);
    const { answers, last } = await revokedBehind({
      consumerId,
      first: [consumerKey, consumerKey],
      send: (key) => askKey(api, key, id),
      newKey: () => anotherKey('consumer'),
      path: '/v1/balance',
    });
    for (const { status } of answers) assert.equal(status, 201);
    assertError(last, 401, 'invalid_api_key');
  });

  it('makes no charges of a batch', async () => {
    const member = { apiKey: account.consumerKey, tool: 'search', amount: 0.000001 };
    // As many bytes as an account may have in progress.
    const metadata = { reason: 'x'.repeat(400) };
    const charges = Array.from({ length: 700 }, () => ({ ...member, metadata }));
    const { answers, last } = await revokedBehind({
      consumerId: account.consumerId,
      first: [account.developerKey],
      send: (key) => call(api, 'POST', '/v1/charges/batch', { key, body: { charges } }),
      newKey: () => anotherKey('developer'),
      path: '/v1/earnings',
    });
    for (const { status } of answers) assert.equal(status, 200);
    assertError(last, 401, 'invalid_secret_key');
  });

  it('adds no money', async () => {
    const side = await testSideOf(api, api.databaseUrl, account);
    const { answers, last, refused } = await revokedBehind({
      consumerId: side.consumerId,
      first: [side.consumerKey, side.consumerKey],
      send: (key) => call(api, 'POST', '/v1/checkout', { key, body: { amount: 5 } }),
      newKey: () => createKey(database, 'fare', 'consumer', side.holder),
      path: '/v1/balance',
    });
    for (const { status } of answers) assert.equal(status, 201);
    assertError(last, 401, 'invalid_api_key');
    const made = [...answers, ...refused].filter(({ status }) => status === 201);
    const balance = await call(api, 'GET', '/v1/balance', { key: side.consumerKey });
    assert.equal(bodyOf(balance, 200, BalanceReply).balance, 5 * made.length);
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
