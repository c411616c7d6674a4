/** Budgets over HTTP: made, read, changed and closed by their owner; what is wrong with a request changes nothing. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { BudgetReply, BudgetsReply } from '../../../src/schemas/budgets.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import {
  askBudget,
  askChange,
  askKey,
  changeBudget,
  closeBudget,
  longestLists,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

const NOTHING = `bdg_${'0'.repeat(32)}`;

describe('budgets', () => {
  const api = openTestApi();
  let account: TestAccount;
  let key: string;

  beforeEach(async () => {
    account = await api.createAccount(10);
    key = account.consumerKey;
  });

  const list = async (query = '') =>
    bodyOf(await call(api, 'GET', `/v1/budgets${query}`, { key }), 200, BudgetsReply);

  it('are made with nothing but a name, and then limit nothing', async () => {
    const { id, createdAt, ...rest } = await makeBudget(api, key, {
      name: 'Otters 🦦',
      parentId: null,
    });
    assert.match(id, /^bdg_[0-9a-f]{32}$/);
    assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000);
    assert.deepEqual(rest, {
      parentId: null,
      name: 'Otters 🦦',
      status: 'active',
      limit: null,
      used: 0,
      window: null,
      remaining: null,
      maxPerCall: null,
      allowLeases: false,
      maxLease: null,
      tools: null,
      developers: null,
      approveDevelopers: false,
      approvedDevelopers: [],
      mayDelegate: false,
      limitsConsumerKeys: false,
      expiresAt: null,
      metadata: null,
    });
  });

  it('are listed in shorter pages where their lists are long', async () => {
    const made: string[] = [];
    while (made.length < 8) made.push((await makeBudget(api, key, longestLists())).id);
    const found: string[] = [];
    let pages = 0;
    for (let next: string | null = ''; next !== null; pages += 1) {
      const query: string = next === '' ? '' : `&cursor=${next}`;
      const answer = await call(api, 'GET', `/v1/budgets?limit=100${query}`, { key });
      assert.ok(JSON.stringify(answer.body).length < 250_000);
      const page = bodyOf(answer, 200, BudgetsReply);
      assert.equal(page.hasMore, page.nextCursor !== null);
      found.push(...page.budgets.map(({ id }) => id));
      next = page.nextCursor;
    }
    assert.deepEqual(found, made.toReversed());
    assert.ok(pages > 1 && pages < made.length, `${pages} pages`);
    // A page that its limit ends.
    const [newest] = (await list('?limit=1')).budgets;
    assert.equal(newest?.id, made.at(-1));
  });

  it('keep every member that they are made with', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const sent = {
      name: 'agent',
      limit: 5,
      maxPerCall: 0.5,
      allowLeases: true,
      maxLease: 2,
      tools: ['search', `${account.developerId}/fetch`],
      developers: [account.developerId],
      mayDelegate: true,
      expiresAt,
      metadata: { agent: 'a-17', run: 3, isTest: true, note: null },
    };
    const made = await makeBudget(api, key, { ...sent, window: { per: 'day', limit: '1.50' } });
    const { window, ...rest } = await showBudget(api, key, made.id);
    const { window: _, ...shown } = made;
    assert.deepEqual(rest, { ...shown, ...sent, remaining: 1.5 });
    assert.deepEqual(
      { ...window, resetsAt: '' },
      { per: 'day', limit: 1.5, used: 0, resetsAt: '' },
    );
    const midnight = new Date();
    midnight.setUTCHours(24, 0, 0, 0);
    assert.equal(window?.resetsAt, midnight.toISOString());
  });

  it('show the least that is left on the way up to the account', async () => {
    const root = await makeBudget(api, key, { limit: 3 });
    const child = await makeBudget(api, key, { parentId: root.id, limit: 8 });
    assert.deepEqual([child.parentId, child.remaining], [root.id, 3]);
    const { key: spendKey } = await makeKey(api, key, child.id);
    assert.equal((await spend(api, account, spendKey, 1.25)).status, 201);
    const { used, remaining } = await showBudget(api, key, child.id);
    assert.deepEqual([used, remaining], [1.25, 1.75]);
    assert.equal((await showBudget(api, key, root.id)).used, 1.25);
  });

  it('are listed newest first, page by page, and by their parent', async () => {
    const root = await makeBudget(api, key);
    const ids = [root.id];
    for (let n = 0; n < 3; n += 1)
      ids.unshift((await makeBudget(api, key, { parentId: root.id })).id);
    const first = await list('?limit=2');
    assert.deepEqual([first.budgets.map(({ id }) => id), first.hasMore], [ids.slice(0, 2), true]);
    const second = await list(`?limit=2&cursor=${first.nextCursor}`);
    assert.deepEqual(
      [second.budgets.map(({ id }) => id), second.hasMore, second.nextCursor],
      [ids.slice(2), false, null],
    );
    const last = await list(`?cursor=${root.id}`);
    assert.deepEqual([last.budgets, last.hasMore], [[], false]);
    const stranger = await api.createAccount(0);
    const { id: theirs } = await makeBudget(api, stranger.consumerKey);
    const foreign = await call(api, 'GET', `/v1/budgets?cursor=${theirs}`, { key });
    assertError(foreign, 400, 'invalid_cursor', 'cursor');
    const children = await list(`?parentId=${root.id}`);
    assert.deepEqual(
      children.budgets.map(({ id }) => id),
      ids.slice(0, 3),
    );
  });

  it('change in the members that are sent, and in no other', async () => {
    const made = await makeBudget(api, key, { limit: 5, tools: ['search'], metadata: { a: 1 } });
    const named = await changeBudget(api, key, made.id, { name: 'other' });
    assert.deepEqual(named, { ...made, name: 'other' });
    const open = await changeBudget(api, key, made.id, {
      limit: null,
      tools: null,
      metadata: null,
    });
    assert.deepEqual(open, { ...named, limit: null, remaining: null, tools: null, metadata: null });
    assert.deepEqual(await changeBudget(api, key, made.id, {}), open);
  });

  it('refuse from then on when a limit is set below what is used, and nothing is touched', async () => {
    const { id } = await makeBudget(api, key, { limit: 5, window: { per: 'month', limit: 4 } });
    const { key: spendKey } = await makeKey(api, key, id);
    assert.equal((await spend(api, account, spendKey, 3)).status, 201);
    const lowered = await changeBudget(api, key, id, { limit: 1 });
    assert.deepEqual([lowered.used, lowered.limit, lowered.remaining], [3, 1, 0]);
    const refused = await spend(api, account, spendKey, 0.000001);
    assertError(refused, 402, 'spend_limit_reached', undefined, {
      budgetId: id,
      limit: 1,
      scope: 'total',
      remaining: 0,
      resetsAt: null,
      developerId: account.developerId,
      tool: 'search',
      required: 0.000001,
    });
    await changeBudget(api, key, id, { limit: 3.5, window: { per: 'month', limit: 2 } });
    assert.equal((await spend(api, account, spendKey, 0.1)).status, 402);
    await changeBudget(api, key, id, { window: { per: 'month', limit: 3.1 } });
    assert.equal((await spend(api, account, spendKey, 0.1)).status, 201);
    assert.equal((await spend(api, account, spendKey, 0.1)).status, 402);
  });

  it('count a window of another unit from the change on', async () => {
    const { id } = await makeBudget(api, key, { window: { per: 'month', limit: 2 } });
    const { key: spendKey } = await makeKey(api, key, id);
    assert.equal((await spend(api, account, spendKey, 2)).status, 201);
    const daily = await changeBudget(api, key, id, { window: { per: 'day', limit: 1 } });
    assert.deepEqual([daily.window?.used, daily.used, daily.remaining], [0, 2, 1]);
    assert.equal((await spend(api, account, spendKey, 1)).status, 201);
    assert.equal((await showBudget(api, key, id)).window?.used, 1);
    assert.equal((await changeBudget(api, key, id, { window: null })).window, null);
    assert.equal((await spend(api, account, spendKey, 1)).status, 201);
  });

  it("count from now on when a window that Postgres' clock began too early is set again", async () => {
    const window = { per: 'month', limit: 2 } as const;
    const { id } = await makeBudget(api, key, { window });
    const { key: spendKey } = await makeKey(api, key, id);
    assert.equal((await spend(api, account, spendKey, 2)).status, 201);
    await api.sql.query(
      `update farebox.budgets set window_began = now() + interval '1 year'
       where (ledger, consumer_id, number) = (
         select ledger, consumer_id, number from farebox.budget_details where id = $1)`,
      [uuidOf('budget', id)],
    );
    assert.equal((await spend(api, account, spendKey, 2)).status, 402);
    assert.equal((await changeBudget(api, key, id, { window })).window?.used, 0);
    assert.equal((await spend(api, account, spendKey, 2)).status, 201);
  });

  it('close with all budgets below them, and closing twice changes nothing', async () => {
    const root = await makeBudget(api, key);
    const child = await makeBudget(api, key, { parentId: root.id });
    const closed = await closeBudget(api, key, root.id);
    assert.equal(closed.status, 'closed');
    assert.deepEqual(await closeBudget(api, key, root.id), closed);
    assert.equal((await showBudget(api, key, child.id)).status, 'closed');
    for (const { id } of [root, child]) {
      assertError(await askChange(api, key, id, { limit: 1 }), 409, 'budget_closed');
      assertError(await askKey(api, key, id), 409, 'budget_closed');
      assertError(await askBudget(api, key, { parentId: id }), 409, 'budget_closed');
    }
  });

  it('are at most six deep', async () => {
    let parentId: string | undefined;
    for (let depth = 1; depth <= 6; depth += 1) {
      parentId = (await makeBudget(api, key, { parentId })).id;
    }
    assertError(await askBudget(api, key, { parentId }), 400, 'invalid_request', 'parentId');
  });

  it('never move, so a cycle is impossible', async () => {
    const root = await makeBudget(api, key);
    const child = await makeBudget(api, key, { parentId: root.id });
    const answer = await askChange(api, key, root.id, { parentId: child.id });
    assertError(answer, 400, 'invalid_request', 'parentId');
    assert.equal((await showBudget(api, key, root.id)).parentId, null);
  });

  const BAD: readonly (readonly [
    body: object,
    code: 'invalid_request' | 'invalid_amount',
    param?: string,
  ])[] = [
    [{ name: null }, 'invalid_request', 'name'],
    [{ name: '' }, 'invalid_request', 'name'],
    [{ name: 'x'.repeat(10_000) }, 'invalid_request', 'name'],
    [{ name: 'a\u0000b' }, 'invalid_request', 'name'],
    [{ limit: -1 }, 'invalid_amount', 'limit'],
    [{ limit: 0.0000001 }, 'invalid_amount', 'limit'],
    [{ limit: 1e300 }, 'invalid_amount', 'limit'],
    [{ limit: 9_007_199_254.740_992 }, 'invalid_amount', 'limit'],
    [{ limit: '9'.repeat(40) }, 'invalid_amount', 'limit'],
    [{ limit: true }, 'invalid_amount', 'limit'],
    [{ limits: 5 }, 'invalid_request', 'limits'],
    [{ maxPerCall: 0 }, 'invalid_amount', 'maxPerCall'],
    [{ maxPerCall: '1,5' }, 'invalid_amount', 'maxPerCall'],
    [{ maxLease: 0 }, 'invalid_amount', 'maxLease'],
    [{ maxLease: true }, 'invalid_amount', 'maxLease'],
    [{ allowLeases: 'yes' }, 'invalid_request', 'allowLeases'],
    [{ window: 5 }, 'invalid_request', 'window'],
    [{ window: { per: 'year', limit: 1 } }, 'invalid_request', 'window.per'],
    [{ window: { per: 'day' } }, 'invalid_request', 'window.limit'],
    [{ window: { per: 'day', limit: -0.01 } }, 'invalid_amount', 'window.limit'],
    [{ window: { per: 'day', limit: true } }, 'invalid_amount', 'window.limit'],
    [{ window: { per: 'day', limit: 1, rolling: true } }, 'invalid_request', 'window'],
    [{ tools: [] }, 'invalid_request', 'tools'],
    [{ tools: ['search', 'search'] }, 'invalid_request', 'tools'],
    [{ tools: [7] }, 'invalid_request', 'tools.0'],
    [{ developers: ['search'] }, 'invalid_request', 'developers.0'],
    [{ mayDelegate: 'yes' }, 'invalid_request', 'mayDelegate'],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, 'invalid_request', 'expiresAt'],
    [{ expiresAt: 'tomorrow' }, 'invalid_request', 'expiresAt'],
    [{ expiresAt: '2030-02-31T00:00:00Z' }, 'invalid_request', 'expiresAt'],
    [{ expiresAt: '9999-12-31T23:59:59-12:00' }, 'invalid_request', 'expiresAt'],
    [{ metadata: { deep: { er: 1 } } }, 'invalid_request', 'metadata.deep'],
    [{ parentId: 'root' }, 'invalid_request', 'parentId'],
    [{ approveDevelopers: 'yes' }, 'invalid_request', 'approveDevelopers'],
    [{ approvedDevelopers: ['nobody'] }, 'invalid_request', 'approvedDevelopers.0'],
  ];
  for (const [body, code, param] of BAD) {
    it(`are neither made nor changed by ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const made = await makeBudget(api, key);
      assertError(await askBudget(api, key, { ...body }), 400, code, param);
      assertError(await askChange(api, key, made.id, { ...body }), 400, code, param);
      assert.deepEqual((await list()).budgets, [made]);
    });
  }

  it('take the largest limit that a balance can have', async () => {
    const { limit } = await makeBudget(api, key, { limit: '9007199254.740991' });
    assert.equal(limit, Number.MAX_SAFE_INTEGER / 1e6);
    assert.equal((await makeBudget(api, key, { limit: 0 })).remaining, 0);
  });

  it('are found by nobody else, and not by a number that is close', async () => {
    const { id } = await makeBudget(api, key, { name: 'ours' });
    const stranger = (await api.createAccount(1)).consumerKey;
    const next = id.slice(0, -1) + ((Number.parseInt(id.slice(-1), 16) + 1) % 16).toString(16);
    for (const [by, asked] of [
      [stranger, id],
      [key, next],
      [key, NOTHING],
    ] as const) {
      for (const answer of [
        await call(api, 'GET', `/v1/budgets/${asked}`, { key: by }),
        await askChange(api, by, asked, { limit: 1 }),
        await call(api, 'POST', `/v1/budgets/${asked}/close`, { key: by }),
        await askKey(api, by, asked),
        await call(api, 'GET', `/v1/budgets/${asked}/keys`, { key: by }),
        await call(api, 'GET', `/v1/budgets?parentId=${asked}`, { key: by }),
      ]) {
        assertError(answer, 404, 'not_found');
      }
      assertError(await askBudget(api, by, { parentId: asked }), 404, 'not_found', 'parentId');
    }
    assert.equal(
      bodyOf(await call(api, 'GET', `/v1/budgets/${id}`, { key }), 200, BudgetReply).status,
      'active',
    );
  });
});
