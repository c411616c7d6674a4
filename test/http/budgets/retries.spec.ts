/**
 * Budgets, spend keys and leases are made once under one idempotency key. The retry is answered as the first
 * request was, even if a new request would be refused by now.
 */
import assert from 'node:assert/strict';
import { BudgetReply, BudgetsReply, SpendKeysReply } from '../../../src/schemas/budgets.ts';
import { KeyReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import { LeaseReply, PlacedLeaseReply } from '../../../src/schemas/leases.ts';
import { ToolReply } from '../../../src/schemas/tools.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { keyed } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { askLease, askRenewal, makeLeasable } from '../../support/lease-requests.ts';
import { soonExpiring } from '../../support/soon-expiring.ts';
import { until } from '../../support/stack.ts';

describe('the creation of budgets, spend keys and leases under an idempotency key', () => {
  let api: TestApi;
  let account: TestAccount;
  let key: string;

  before(async () => {
    api = await startTestApi({ servers: 2 });
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    key = account.consumerKey;
  });
  after(() => api.stop());

  const ask = (path: string, body: object, idempotencyKey: string, by = key, server = api.url) =>
    call({ url: server }, 'POST', path, {
      body,
      headers: { authorization: `Bearer ${by}`, 'idempotency-key': idempotencyKey },
    });
  const askBudget = (body: object, idempotencyKey: string, by = key) =>
    ask('/v1/budgets', body, idempotencyKey, by);
  const listed = async () => {
    const { budgets } = bodyOf(await call(api, 'GET', '/v1/budgets', { key }), 200, BudgetsReply);
    return budgets.length;
  };

  it('makes one budget for one idempotency key, even when both requests come at once', async () => {
    const { body, answers, ids, count } = await soonExpiring(async (expiresAt) => {
      const before = await listed();
      const asked = { name: 'agent', limit: 5, expiresAt };
      const all = await Promise.all([1, 2, 3].map(() => askBudget(asked, expiresAt)));
      const made = new Set(all.map((answer) => bodyOf(answer, 201, BudgetReply).id));
      return { body: asked, answers: all, ids: made, count: (await listed()) - before };
    });
    assert.equal(ids.size, 1);
    assert.equal(count, 1);
    const { expiresAt } = body;
    const replays = answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true');
    assert.equal(replays.length, 2);
    // Even when its expiry, which nobody could ask for any more, has passed.
    await until(() => Date.now() > Date.parse(expiresAt));
    assert.ok(ids.has(bodyOf(await askBudget(body, expiresAt), 201, BudgetReply).id));
  });

  it('answers the retry for a budget whose parent was closed since', async () => {
    const { id: parentId } = await makeBudget(api, key);
    const body = { name: 'agent', parentId };
    const made = bodyOf(await askBudget(body, 'child'), 201, BudgetReply);
    await closeBudget(api, key, parentId);
    assert.equal(bodyOf(await askBudget(body, 'child'), 201, BudgetReply).id, made.id);
    assertError(await askBudget(body, 'late'), 409, 'budget_closed');
  });

  it('refuses an idempotency key that made another budget', async () => {
    bodyOf(await askBudget({ name: 'agent', limit: 5 }, 'taken'), 201, BudgetReply);
    for (const body of [{ name: 'agent', limit: 6 }, { name: 'agent' }]) {
      assertError(await askBudget(body, 'taken'), 422, 'idempotency_key_reused');
    }
    assert.equal(await listed(), 1);
  });

  it('keeps the idempotency keys of accounts and of spend keys apart', async () => {
    const stranger = await api.createAccount(1);
    const own = await makeBudget(api, key, { mayDelegate: true });
    const { key: spendKey } = await makeKey(api, key, own.id);
    const ids = [];
    for (const by of [key, spendKey, stranger.consumerKey]) {
      ids.push(bodyOf(await askBudget({ name: 'agent' }, 'shared', by), 201, BudgetReply).id);
    }
    assert.equal(new Set(ids).size, 3);
  });

  it('makes one spend key and shows it again, on every server, even when it has ended', async () => {
    const { id } = await makeBudget(api, key);
    const path = `/v1/budgets/${id}/keys`;
    const body = { name: 'session 17' };
    const other = api.servers[1]?.url;
    const answers = await Promise.all(
      [api.url, other].map((server) => ask(path, body, 'key', key, server)),
    );
    const [made, again] = answers.map((answer) => bodyOf(answer, 201, NewKeyReply));
    assert.deepEqual(made, again);
    assert.equal(answers[1]?.headers.get('cache-control'), 'no-store');
    assert.equal((await spend(api, account, made?.key ?? '', 1)).status, 201);
    assertError(await ask(path, { name: 'other' }, 'key'), 422, 'idempotency_key_reused');
    const elsewhere = await makeBudget(api, key);
    const there = `/v1/budgets/${elsewhere.id}/keys`;
    assertError(await ask(there, body, 'key'), 422, 'idempotency_key_reused');
    bodyOf(await call(api, 'POST', `/v1/keys/${made?.id}/revoke`, { key }), 200, KeyReply);
    assert.deepEqual(bodyOf(await ask(path, body, 'key'), 201, NewKeyReply), made);
    const { keys } = bodyOf(await call(api, 'GET', path, { key }), 200, SpendKeysReply);
    assert.equal(keys.length, 1);
    // Another idempotency key, another key.
    const next = bodyOf(await ask(path, body, 'next'), 201, NewKeyReply);
    assert.notEqual(next.key, made?.key);
    await closeBudget(api, key, id);
    assert.deepEqual(bodyOf(await ask(path, body, 'key'), 201, NewKeyReply), made);
    assertError(await ask(path, body, 'late'), 409, 'budget_closed');
  });

  it('makes different spend keys for the account and for a spend key above, under one idempotency key', async () => {
    const root = await makeBudget(api, key, { mayDelegate: true });
    const { id } = await makeBudget(api, key, { parentId: root.id });
    const { key: above } = await makeKey(api, key, root.id);
    const made = [];
    for (const by of [key, above, above, key]) {
      const answer = await ask(`/v1/budgets/${id}/keys`, { name: 'session 1' }, 'session-1', by);
      made.push(bodyOf(answer, 201, NewKeyReply));
    }
    const [first, second, secondAgain, firstAgain] = made;
    assert.deepEqual([secondAgain, firstAgain], [second, first]);
    assert.notEqual(second?.key, first?.key);
  });

  it('rolls a spend key once and shows the new one again, even after it was rolled', async () => {
    const { id } = await makeBudget(api, key);
    const { id: first } = await makeKey(api, key, id, { name: 'session 18' });
    const path = `/v1/keys/${first}/roll`;
    const answers = await Promise.all([1, 2, 3].map(() => ask(path, {}, 'roll')));
    const [rolled] = answers.map((answer) => bodyOf(answer, 201, NewKeyReply));
    for (const answer of answers) assert.deepEqual(bodyOf(answer, 201, NewKeyReply), rolled);
    const replays = answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true');
    assert.equal(replays.length, 2);
    assert.equal((await spend(api, account, rolled?.key ?? '', 1)).status, 201);
    assertError(await ask(path, { overlapSeconds: 9 }, 'roll'), 422, 'idempotency_key_reused');
    assertError(await ask(path, {}, 'other'), 404, 'not_found');
    bodyOf(await ask(`/v1/keys/${rolled?.id}/roll`, {}, 'next'), 201, NewKeyReply);
    assert.deepEqual(bodyOf(await ask(path, {}, 'roll'), 201, NewKeyReply), rolled);
    const { keys } = bodyOf(
      await call(api, 'GET', `/v1/budgets/${id}/keys`, { key }),
      200,
      SpendKeysReply,
    );
    assert.equal(keys.length, 3);
  });

  it('answers the retry of a lease or renewal that would be refused by now', async () => {
    const { spendKey, keyId, budgetId } = await makeLeasable(api, key);
    const owner = { key: account.developerKey };
    const priced = { ...owner, body: { name: 'priced', price: 0.07 } };
    const tool = bodyOf(await call(api, 'POST', '/v1/tools', priced), 201, ToolReply).id;
    const body = { tools: ['priced'], amount: 1 };
    const lease = bodyOf(
      await askLease(api, account, spendKey, body, keyed('placed')),
      201,
      PlacedLeaseReply,
    );
    const first = bodyOf(
      await askRenewal(api, account, lease.id, { expiresIn: 900 }, keyed('renewed')),
      200,
      LeaseReply,
    );
    const retried = async () => {
      const placed = await askLease(api, account, spendKey, body, keyed('placed'));
      assert.equal(placed.headers.get('idempotency-replayed'), 'true');
      assert.equal(bodyOf(placed, 201, PlacedLeaseReply).id, lease.id);
      const renewed = await askRenewal(
        api,
        account,
        lease.id,
        { expiresIn: 900 },
        keyed('renewed'),
      );
      assert.equal(renewed.headers.get('idempotency-replayed'), 'true');
      assert.equal(bodyOf(renewed, 200, LeaseReply).fence, first.fence);
      const larger = await askLease(
        api,
        account,
        spendKey,
        { ...body, amount: 2 },
        keyed('placed'),
      );
      assertError(larger, 422, 'idempotency_key_reused');
      const later = await askRenewal(api, account, lease.id, { expiresIn: 901 }, keyed('renewed'));
      assertError(later, 422, 'idempotency_key_reused');
    };
    /** More than the balance, so that no lease is placed before every change is seen. */
    const probe = async () =>
      (await askLease(api, account, spendKey, { ...body, amount: 11 }, keyed('new'))).status;
    const refusedWith = async (status: number) => {
      await until(async () => (await probe()) === status);
      const renewal = await askRenewal(api, account, lease.id, { expiresIn: 1_000 }, keyed('new'));
      assert.equal(renewal.status, status);
      await api.changingNothing(retried);
    };
    const archive = (archived: boolean) =>
      call(api, 'PATCH', `/v1/tools/${tool}`, { ...owner, body: { archived } });
    await archive(true);
    await refusedWith(400);
    await archive(false);
    await changeBudget(api, key, budgetId, { allowLeases: false });
    await refusedWith(403);
    await changeBudget(api, key, budgetId, { allowLeases: true });
    await call(api, 'POST', `/v1/keys/${keyId}/revoke`, { key });
    await refusedWith(401);
    await closeBudget(api, key, budgetId);
    await refusedWith(401);
    assert.equal((await showBudget(api, key, budgetId)).used, 1);
  });
});
