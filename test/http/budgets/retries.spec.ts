/** Budgets and spend keys are made once under one idempotency key, and the retry shows the same key again. */
import assert from 'node:assert/strict';
import { BudgetReply, BudgetsReply, SpendKeysReply } from '../../../src/schemas/budgets.ts';
import { KeyReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { closeBudget, makeBudget, makeKey, spend } from '../../support/budget-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

describe('the creation of budgets and spend keys under an idempotency key', () => {
  let api: TestApi;
  let account: TestAccount;
  let key: string;

  before(async () => {
    api = await startTestApi({ processes: 2 });
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

  it('makes one budget for one idempotency key, also when both requests come at once', async () => {
    const body = { name: 'agent', limit: 5, expiresAt: new Date(Date.now() + 400).toISOString() };
    const answers = await Promise.all([1, 2, 3].map(() => askBudget(body, 'once')));
    const ids = new Set(answers.map((answer) => bodyOf(answer, 201, BudgetReply).id));
    assert.equal(ids.size, 1);
    assert.equal(await listed(), 1);
    const replays = answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true');
    assert.equal(replays.length, 2);
    // Even when its expiry, which nobody could ask for any more, has passed.
    while (Date.now() <= Date.parse(body.expiresAt)) await listed();
    assert.ok(ids.has(bodyOf(await askBudget(body, 'once'), 201, BudgetReply).id));
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

  it('makes one spend key and shows it again, in every process, even when it has ended', async () => {
    const { id } = await makeBudget(api, key);
    const path = `/v1/budgets/${id}/keys`;
    const body = { name: 'session 17' };
    const other = api.processes[1]?.url;
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
});
