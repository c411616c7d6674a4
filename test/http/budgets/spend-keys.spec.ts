/** Spend keys: they can be charged within their budgets and read their own node, and nothing else, on every server. */
import assert from 'node:assert/strict';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { BudgetsReply, SpendKeysReply } from '../../../src/schemas/budgets.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { ErrorReply } from '../../../src/schemas/errors.ts';
import { KeyReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { proveBooks } from '../../support/books.ts';
import {
  askBudget,
  askChange,
  askKey,
  changeBudget,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { endAll } from '../../support/end-all.ts';
import { askHold, place } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { holdConsumer, holdSpendKey, waitedTooLong } from '../../support/row-locks.ts';
import { soonExpiring } from '../../support/soon-expiring.ts';
import { until, type Server } from '../../support/stack.ts';

describe('spend keys', () => {
  let api: TestApi;
  let account: TestAccount;
  let key: string;
  let other: Server;

  before(async () => {
    api = await startTestApi({ servers: 2 });
    other = api.servers[1] as Server;
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    key = account.consumerKey;
  });
  after(() =>
    endAll(
      () => proveBooks(api.env, { processor: false }),
      () => api.stop(),
    ),
  );

  /** The status of a charge of a cent, by the other server. */
  const status = async (spendKey: string) => (await spend(other, account, spendKey, 0.01)).status;
  const act = (by: string, id: string, action: 'roll' | 'revoke', body: object = {}) =>
    call(api, 'POST', `/v1/keys/${id}/${action}`, { key: by, body });

  describe('a charge', () => {
    it('counts at the budget of the key and at every one above, and no other', async () => {
      const root = await makeBudget(api, key, { limit: 9 });
      const middle = await makeBudget(api, key, {
        parentId: root.id,
        window: { per: 'week', limit: 8 },
      });
      const leaf = await makeBudget(api, key, { parentId: middle.id });
      const beside = await makeBudget(api, key, { parentId: middle.id, limit: 5 });
      const { key: spendKey } = await makeKey(api, key, leaf.id);
      const made = bodyOf(await spend(api, account, spendKey, 2), 201, ChargeReply);
      assert.deepEqual([made.balance, made.consumerId], [8, account.consumerId]);
      const used = async (id: string) => (await showBudget(api, key, id)).used;
      assert.deepEqual(
        [await used(root.id), await used(middle.id), await used(leaf.id), await used(beside.id)],
        [2, 2, 2, 0],
      );
      assert.equal((await showBudget(api, key, middle.id)).window?.used, 2);
    });

    it('is refused by the first limit on the way down that it does not fit, which is named', async () => {
      const root = await makeBudget(api, key, { limit: 3 });
      const leaf = await makeBudget(api, key, {
        parentId: root.id,
        limit: 2,
        window: { per: 'day', limit: 1 },
      });
      const { key: spendKey } = await makeKey(api, key, leaf.id);
      const refused = (amount: number) =>
        api.changingNothing(() => spend(api, account, spendKey, amount));
      assert.equal((await spend(api, account, key, 0.01)).status, 201);
      const asked = { developerId: account.developerId, tool: 'search' };
      const all = { resetsAt: null, scope: 'total', ...asked };
      assertError(await refused(4), 402, 'spend_limit_reached', undefined, {
        ...all,
        budgetId: root.id,
        limit: 3,
        remaining: 3,
        required: 4,
      });
      assertError(await refused(2.5), 402, 'spend_limit_reached', undefined, {
        ...all,
        budgetId: leaf.id,
        limit: 2,
        remaining: 2,
        required: 2.5,
      });
      const midnight = new Date();
      midnight.setUTCHours(24, 0, 0, 0);
      assertError(await refused(1.000001), 402, 'spend_limit_reached', undefined, {
        budgetId: leaf.id,
        limit: 1,
        scope: 'window',
        remaining: 1,
        resetsAt: midnight.toISOString(),
        ...asked,
        required: 1.000001,
      });
      assert.equal((await spend(api, account, spendKey, 1)).status, 201);
    });

    it('is refused for the balance when every limit has room', async () => {
      const { id } = await makeBudget(api, key, { limit: 100 });
      const { key: spendKey } = await makeKey(api, key, id);
      const answer = await spend(api, account, spendKey, 10.000001);
      assert.equal((answer.body as { error: { code: string } }).error.code, 'insufficient_balance');
      assert.equal((await showBudget(api, key, id)).used, 0);
    });

    it('is refused by maxPerCall, tools and developers, each with its code', async () => {
      const stranger = await api.createAccount(0);
      const budget = await makeBudget(api, key, {
        maxPerCall: 0.5,
        tools: ['search', `${account.developerId}/fetch`],
      });
      const { key: spendKey } = await makeKey(api, key, budget.id);
      const budgetId = budget.id;
      const dear = await spend(api, account, spendKey, 0.500001);
      assertError(dear, 402, 'spend_limit_reached', undefined, {
        budgetId,
        scope: 'per_call',
        limit: 0.5,
        remaining: 0.5,
        resetsAt: null,
        developerId: account.developerId,
        tool: 'search',
        required: 0.500001,
      });
      const { error } = dear.body as ErrorReply;
      assert.equal(error.message, 'The budget allows at most $0.50 for one call.');
      const by = (developer: TestAccount, tool: string) =>
        spend(api, { ...account, developerKey: developer.developerKey }, spendKey, 0.1, { tool });
      assertError(await by(account, 'other'), 403, 'tool_not_allowed', 'tool', { budgetId });
      for (const tool of ['fetch', `${account.developerId}/fetch`]) {
        assertError(await by(stranger, tool), 403, 'tool_not_allowed', 'tool', { budgetId });
      }
      for (const answer of [
        await by(account, 'fetch'),
        await by(account, 'search'),
        await by(stranger, 'search'),
      ]) {
        assert.equal(answer.status, 201);
      }
      await changeBudget(api, key, budgetId, { developers: [account.developerId], tools: null });
      await until(async () => (await by(stranger, 'search')).status === 403);
      assertError(await by(stranger, 'search'), 403, 'developer_not_allowed', undefined, {
        budgetId,
      });
      assert.equal((await by(account, 'anything')).status, 201);
      assertError(await by(stranger, 'search'), 403, 'developer_not_allowed', undefined, {
        budgetId,
      });
    });

    it('that was made is answered to its retry, although its budget would refuse it by now', async () => {
      const { id } = await makeBudget(api, key, { limit: 1 });
      const made = await makeKey(api, key, id);
      const again = () => spend(api, account, made.key, 1, {}, { 'idempotency-key': `once ${id}` });
      const first = bodyOf(await again(), 201, ChargeReply);
      assert.deepEqual(bodyOf(await again(), 201, ChargeReply), first);
      await changeBudget(api, key, id, { tools: ['nothing'] });
      await until(async () => (await spend(api, account, made.key, 1)).status === 403);
      assert.deepEqual(bodyOf(await again(), 201, ChargeReply), first);
      await closeBudget(api, key, id);
      assert.deepEqual(bodyOf(await again(), 201, ChargeReply), first);
      bodyOf(await act(key, made.id, 'revoke'), 200, KeyReply);
      await until(async () => (await spend(api, account, made.key, 1)).status === 401);
      assert.deepEqual(bodyOf(await again(), 201, ChargeReply), first);
    });

    it('in a batch is decided beside plain ones, each by itself and in order', async () => {
      const { id } = await makeBudget(api, key, { limit: 1 });
      const { key: spendKey } = await makeKey(api, key, id);
      const charges = [
        [key, 1],
        [spendKey, 0.6],
        [spendKey, 0.6],
        [key, 0.5],
        [spendKey, 0.4],
        ['nonsense', 1],
      ].map(([apiKey, amount]) => ({ apiKey, amount, tool: 'search' }));
      const answer = await call(api, 'POST', '/v1/charges/batch', {
        key: account.developerKey,
        body: { charges },
      });
      const { results } = bodyOf(answer, 200, ChargeBatchReply);
      assert.deepEqual(
        results.map(({ status }) => status),
        [201, 201, 402, 201, 201, 401],
      );
      assert.equal((await showBudget(api, key, id)).used, 1);
    });
  });

  describe('of everything else', () => {
    it('read their own budget, without who is above it', async () => {
      const root = await makeBudget(api, key, { limit: 1 });
      await makeBudget(api, key, { name: 'a neighbor' });
      const own = await makeBudget(api, key, { parentId: root.id, limit: 5 });
      const below = await makeBudget(api, key, { parentId: own.id });
      const { key: spendKey } = await makeKey(api, key, own.id);
      const list = await call(api, 'GET', '/v1/budgets', { key: spendKey });
      assert.deepEqual(bodyOf(list, 200, BudgetsReply).budgets, [{ ...own, parentId: null }]);
      for (const { id } of [root, below]) {
        const answer = await call(api, 'GET', `/v1/budgets/${id}`, { key: spendKey });
        assertError(answer, 404, 'not_found');
      }
    });

    it('do nothing unless their budget may delegate', async () => {
      const own = await makeBudget(api, key);
      const below = await makeBudget(api, key, { parentId: own.id });
      const made = await makeKey(api, key, own.id);
      const sibling = await makeKey(api, key, own.id);
      const lower = await makeKey(api, key, below.id);
      const by = made.key;
      const path = `/v1/budgets/${own.id}`;
      assertError(await askBudget(api, by), 403, 'delegation_not_allowed');
      assertError(await askChange(api, by, own.id, { limit: 99 }), 403, 'delegation_not_allowed');
      assertError(
        await call(api, 'POST', `${path}/close`, { key: by }),
        403,
        'delegation_not_allowed',
      );
      assertError(await askKey(api, by, own.id), 403, 'delegation_not_allowed');
      assertError(
        await call(api, 'GET', `${path}/keys`, { key: by }),
        403,
        'delegation_not_allowed',
      );
      assertError(await askChange(api, by, below.id, { limit: 1 }), 404, 'not_found');
      for (const { id } of [made, sibling, lower]) {
        assertError(await act(by, id, 'revoke'), 404, 'not_found');
        assertError(await act(by, id, 'roll'), 404, 'not_found');
      }
    });

    it('split their budget further when it may delegate, and never change it or go beyond it', async () => {
      const root = await makeBudget(api, key, { limit: 9 });
      const own = await makeBudget(api, key, { parentId: root.id, limit: 2, mayDelegate: true });
      const made = await makeKey(api, key, own.id);
      const sibling = await makeKey(api, key, own.id);
      const by = made.key;
      const child = await makeBudget(api, by, { limit: 100 });
      assert.deepEqual([child.parentId, child.remaining], [own.id, 2]);
      const childKey = await makeKey(api, by, child.id);
      assert.equal((await spend(api, account, childKey.key, 1.5)).status, 201);
      const refused = await spend(api, account, childKey.key, 1);
      assertError(refused, 402, 'spend_limit_reached', undefined, {
        budgetId: own.id,
        scope: 'total',
        limit: 2,
        remaining: 0.5,
        resetsAt: null,
        developerId: account.developerId,
        tool: 'search',
        required: 1,
      });
      assert.equal((await changeBudget(api, by, child.id, { limit: 1 })).limit, 1);
      assertError(await askBudget(api, by, { parentId: root.id }), 404, 'not_found', 'parentId');
      assertError(await askChange(api, by, own.id, { limit: 9 }), 403, 'delegation_not_allowed');
      assertError(await askKey(api, by, own.id), 403, 'delegation_not_allowed');
      for (const { id } of [made, sibling])
        assertError(await act(by, id, 'revoke'), 404, 'not_found');
      bodyOf(await act(by, childKey.id, 'revoke'), 200, KeyReply);
      assert.equal((await closeBudget(api, by, child.id)).status, 'closed');
    });

    it('neither roll nor revoke a key of the account, nor does a consumer key', async () => {
      const { id } = await makeBudget(api, key, { mayDelegate: true });
      const { key: spendKey } = await makeKey(api, key, id);
      const { rows } = await api.sql.query<{ id: string }>(
        `select 'key_' || replace(k.id::text, '-', '') as id from farebox.api_keys k
         join farebox.accounts a on a.id = k.account_id where a.email = $1`,
        [account.email],
      );
      assert.equal(rows.length, 3);
      for (const { id: ofAccount } of rows) {
        for (const by of [spendKey, key]) {
          assertError(await act(by, ofAccount, 'revoke'), 404, 'not_found');
          assertError(await act(by, ofAccount, 'roll'), 404, 'not_found');
        }
      }
    });
  });

  it('are shown once, kept by no cache, and listed with those that have ended', async () => {
    const { id } = await makeBudget(api, key);
    const answer = await askKey(api, key, id, { name: 'session 17' });
    const made = bodyOf(answer, 201, NewKeyReply);
    assert.match(made.key, /^fare_ck_live_/);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    bodyOf(await act(key, made.id, 'revoke'), 200, KeyReply);
    const second = await makeKey(api, key, id);
    const listed = await call(api, 'GET', `/v1/budgets/${id}/keys`, { key });
    const { keys } = bodyOf(listed, 200, SpendKeysReply);
    assert.deepEqual(
      keys.map((each) => [
        each.id,
        each.name,
        each.budgetId,
        each.kind,
        each.lastFour,
        each.revokedAt !== null,
      ]),
      [
        [second.id, null, id, 'consumer', second.key.slice(-4), false],
        [made.id, 'session 17', id, 'consumer', made.key.slice(-4), true],
      ],
    );
    assert.ok(!JSON.stringify(listed.body).includes(made.key));
  });

  it('show their last use at once', async () => {
    const { id } = await makeBudget(api, key);
    const { key: spendKey } = await makeKey(api, key, id);
    const lastUse = async () => {
      const listed = await call(api, 'GET', `/v1/budgets/${id}/keys`, { key });
      return bodyOf(listed, 200, SpendKeysReply).keys[0]?.lastUsedAt;
    };
    assert.equal(await lastUse(), null);
    assert.equal((await spend(api, account, spendKey, 0.01)).status, 201);
    assert.ok(await lastUse());
  });

  for (const body of [
    { name: '' },
    { name: 'x'.repeat(10_240) },
    { expiresAt: '2001-01-01T00:00:00Z' },
    { limit: 1 },
  ]) {
    it(`are not made of ${JSON.stringify(body).slice(0, 40)}`, async () => {
      const { id } = await makeBudget(api, key);
      assert.equal((await askKey(api, key, id, body)).status, 400);
      const listed = await call(api, 'GET', `/v1/budgets/${id}/keys`, { key });
      assert.deepEqual(bodyOf(listed, 200, SpendKeysReply).keys, []);
    });
  }

  it('work at once on every server', async () => {
    const { id } = await makeBudget(api, key);
    for (let n = 0; n < 5; n += 1) {
      const { key: spendKey } = await makeKey(api, key, id);
      assert.equal((await spend(other, account, spendKey, 0.01)).status, 201);
    }
  });

  it('hold nothing once they are revoked with their holds, on any server and at any moment', async () => {
    const { id } = await makeBudget(api, key);
    for (let n = 0; n < 5; n += 1) {
      const { id: keyId, key: spendKey } = await makeKey(api, key, id);
      const by = { ...account, consumerKey: spendKey };
      // The other server has the key in memory, and does not hear of its end for a moment.
      const placed = until(async () => (await askHold(other, by, { amount: 0.01 })).status === 401);
      await place(other, by, { amount: 0.01 });
      const body = { releaseHolds: true };
      bodyOf(await call(api, 'POST', `/v1/keys/${keyId}/revoke`, { key, body }), 200, KeyReply);
      assertError(await askHold(other, by, { amount: 0.01 }), 401, 'invalid_api_key', 'apiKey');
      await placed;
      assert.equal((await showBudget(api, key, id)).used, 0);
    }
  });

  it('are revoked with their holds after a hold that is being placed', async () => {
    const { id: budgetId } = await makeBudget(api, key);
    const { id } = await makeKey(api, key, budgetId);
    // As by who places a hold.
    const consumer = await holdConsumer(api.databaseUrl, account.consumerId);
    const revoking = act(key, id, 'revoke', { releaseHolds: true });
    await consumer.waited(1, revoking);
    const path = `/v1/budgets/${budgetId}/keys`;
    const { keys } = bodyOf(await call(api, 'GET', path, { key }), 200, SpendKeysReply);
    await consumer.release();
    assert.equal(keys[0]?.revokedAt, null);
    assert.ok(waitedTooLong(await revoking) || (await revoking).status === 200);
  });

  it('that are revoked while they are rolled end at that time, and have no successor', async () => {
    const { id: budgetId } = await makeBudget(api, key);
    const { id } = await makeKey(api, key, budgetId);
    const row = await holdSpendKey(api.env['DATABASE_URL'] ?? '', id);
    const revoking = act(key, id, 'revoke');
    await row.waited(1);
    const rolling = act(key, id, 'roll');
    await row.waited(2);
    await row.release();
    const { revokedAt } = bodyOf(await revoking, 200, KeyReply);
    assertError(await rolling, 404, 'not_found');
    const path = `/v1/budgets/${budgetId}/keys`;
    const { keys } = bodyOf(await call(api, 'GET', path, { key }), 200, SpendKeysReply);
    assert.deepEqual(
      keys.map((each) => [each.id, each.revokedAt]),
      [[id, revokedAt]],
    );
  });

  for (const expiresAt of [null, new Date(Date.now() + 86_400_000).toISOString()]) {
    it(`that are rolled again in their overlap have successors that expire ${expiresAt ? 'when they did before' : 'never'}`, async () => {
      const { id: budgetId } = await makeBudget(api, key);
      const { id } = await makeKey(api, key, budgetId, expiresAt ? { expiresAt } : {});
      for (const overlapSeconds of [3600, 60, 0]) {
        bodyOf(await act(key, id, 'roll', { overlapSeconds }), 201, NewKeyReply);
      }
      const listed = await call(api, 'GET', `/v1/budgets/${budgetId}/keys`, { key });
      const { keys } = bodyOf(listed, 200, SpendKeysReply);
      const successors = keys.filter((each) => each.id !== id);
      assert.deepEqual(
        successors.map((each) => each.expiresAt),
        [expiresAt, expiresAt, expiresAt],
      );
    });
  }

  it('end everywhere when they are revoked, rolled or expire, or any budget above them is closed', async () => {
    const root = await makeBudget(api, key);
    const middle = await makeBudget(api, key, { parentId: root.id });
    const leaf = await makeBudget(api, key, { parentId: middle.id });
    const [revoked, rolled, below] = [
      await makeKey(api, key, leaf.id),
      await makeKey(api, key, leaf.id, { name: 'rolled' }),
      await makeKey(api, key, leaf.id),
    ];
    for (const each of [revoked, rolled, below]) assert.equal(await status(each.key), 201);
    const ends = async (spendKey: string) => {
      await until(async () => (await status(spendKey)) === 401);
      assertError(await spend(other, account, spendKey, 0.01), 401, 'invalid_api_key', 'apiKey');
      assert.equal((await askHold(other, { ...account, consumerKey: spendKey })).status, 401);
      assertError(
        await call(other, 'GET', '/v1/budgets', { key: spendKey }),
        401,
        'invalid_api_key',
      );
    };
    bodyOf(await act(key, revoked.id, 'revoke'), 200, KeyReply);
    await ends(revoked.key);
    const answer = await act(key, rolled.id, 'roll');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    const fresh = bodyOf(answer, 201, NewKeyReply);
    assert.deepEqual([fresh.name, fresh.budgetId], ['rolled', leaf.id]);
    await ends(rolled.key);
    assert.equal(await status(fresh.key), 201);
    const brief = await soonExpiring((expiresAt) => makeKey(api, key, leaf.id, { expiresAt }));
    await ends(brief.key);
    await closeBudget(api, key, middle.id);
    // The debit refuses it immediately, even while the rules in memory are older.
    assert.equal(await status(below.key), 401);
    await ends(below.key);
    await ends(fresh.key);
    const { balance } = bodyOf(await call(api, 'GET', '/v1/balance', { key }), 200, BalanceReply);
    const { used } = await showBudget(api, key, root.id);
    assert.equal(Math.round((balance + used) * 1e6), 10e6);
  });

  it('end when a budget above them expires, and work again once it has a later expiry', async () => {
    const root = await makeBudget(api, key);
    const leaf = await makeBudget(api, key, { parentId: root.id });
    const { key: spendKey } = await makeKey(api, key, leaf.id);
    assert.equal((await spend(api, account, spendKey, 0.01)).status, 201);
    await soonExpiring((expiresAt) => changeBudget(api, key, root.id, { expiresAt }));
    await until(async () => (await spend(api, account, spendKey, 0.01)).status === 401);
    assert.equal((await showBudget(api, key, leaf.id)).status, 'expired');
    const refused = await askKey(api, key, root.id);
    assertError(refused, 409, 'budget_closed');
    assert.match(JSON.stringify(refused.body), /or set a later expiresAt if it has expired/);
    await changeBudget(api, key, root.id, { expiresAt: '2100-01-01T00:00:00Z' });
    await until(async () => (await spend(api, account, spendKey, 0.01)).status === 201);
  });
});
