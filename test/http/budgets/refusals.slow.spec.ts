/** What the spend keys of a budget were refused, as the owner who handed them out reads it. */
import assert from 'node:assert/strict';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { KeyRefusals } from '../../../src/http/refusals/key-refusals.ts';
import { RefusalRecorder } from '../../../src/http/refusals/refusal-recorder.ts';
import { BudgetRefusalsReply } from '../../../src/schemas/refusals.ts';
import { hashOfKey } from '../../../src/store/accounts/api-keys.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { deleteOldRefusals } from '../../../src/store/refusals/refusals.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { makeBudget, makeKey, spend, type Budget } from '../../support/budget-requests.ts';
import { askHold } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { askLease } from '../../support/lease-requests.ts';
import { until } from '../../support/stack.ts';
import { testSideOf } from '../../support/test-mode.ts';

const NO_DEVELOPER = '01a1fd64-55e5-7aa3-b31e-95f51a48130e';

const rethrow = (error: unknown) => {
  throw error;
};

function refuse(
  to: RefusalRecorder,
  key: string,
  nowMs = Date.now(),
  developerId = NO_DEVELOPER,
): void {
  const refusal = { developerId, code: 'invalid_api_key', tool: '', requestId: 'req_1' } as const;
  to.add({ ...refusal, keyHash: hashOfKey(key) }, nowMs);
}

describe('GET /v1/budgets/:id/refusals', () => {
  let api: TestApi;
  let database: Database;
  let owner: TestAccount;
  let seller: TestAccount;
  let budget: Budget;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 1, onError: () => {} });
    seller = await api.createAccount(0);
  });
  beforeEach(async () => {
    owner = await api.createAccount(10);
    budget = await makeBudget(api, owner.consumerKey, { limit: 2, tools: ['search'] });
  });
  after(async () => {
    await database?.end();
    await api?.stop();
  });

  const ask = (key: string, id = budget.id, query = '') =>
    call(api, 'GET', `/v1/budgets/${id}/refusals${query}`, { key });
  const list = async (key: string, id = budget.id, query = '') =>
    bodyOf(await ask(key, id, query), 200, BudgetRefusalsReply).refusals;
  /** The codes with their counts, once there are this many refusals. */
  const countsOf = async (key: string, total: number, id = budget.id) => {
    const found = await until(async () => {
      const all = await list(key, id);
      return all.reduce((sum, { count }) => sum + count, 0) === total ? all : undefined;
    });
    return found.map(({ keyName, code, count }) => `${keyName}: ${code} ${count}`).toSorted();
  };
  const newKey = (id = budget.id, name = 'agent') => makeKey(api, owner.consumerKey, id, { name });
  const recorder = () => new RefusalRecorder(database, { nowMs: Date.now }, rethrow);
  const rows = async () => {
    const { rows: found } = await api.sql.query<{ n: number }>(
      'select count(*)::int as n from farebox.key_refusals',
    );
    return found[0]?.n;
  };

  it('counts what the keys were refused, alone, in a batch, with a hold and with a lease, by key and code', async () => {
    const [first, second] = [await newKey(), await newKey(budget.id, 'other agent')];
    for (const tool of ['search', 'search', 'fetch']) {
      assert.ok((await spend(api, seller, first.key, 5, { tool })).status >= 400);
    }
    const hold = { amount: 5, tool: 'search' };
    assert.equal((await askHold(api, { ...seller, consumerKey: first.key }, hold)).status, 402);
    assert.equal((await askLease(api, seller, first.key)).status, 403);
    const charge = { apiKey: second.key, tool: 'search', amount: 5 };
    const body = { charges: [charge, charge, { apiKey: 7 }] };
    await call(api, 'POST', '/v1/charges/batch', { key: seller.developerKey, body });
    assert.equal((await spend(api, seller, first.key, 1, { tool: 'search' })).status, 201);
    assert.deepEqual(await countsOf(owner.consumerKey, 7), [
      'agent: lease_not_allowed 1',
      'agent: spend_limit_reached 3',
      'agent: tool_not_allowed 1',
      'other agent: spend_limit_reached 2',
    ]);
    const [most] = await list(owner.consumerKey, budget.id, '?hours=1');
    assert.deepEqual([most?.keyId, most?.count], [first.id, 3]);
  });

  it('counts a key that was revoked, and nothing that is no spend key', async () => {
    const key = await newKey();
    const before = await rows();
    await call(api, 'POST', `/v1/keys/${key.id}/revoke`, { key: owner.consumerKey });
    await until(async () => (await spend(api, seller, key.key, 1)).status === 401);
    await spend(api, seller, 'fare_ck_live_none', 1);
    await spend(api, seller, owner.consumerKey, 50);
    const [found] = await until(async () => {
      const all = await list(owner.consumerKey);
      return all.length > 0 ? all : undefined;
    });
    assert.deepEqual([found?.keyId, found?.code], [key.id, 'invalid_api_key']);
    await until(async () => {
      const answer = await call(api, 'GET', '/v1/refusals', { key: seller.developerKey });
      return JSON.stringify(answer.body).includes('insufficient_balance');
    });
    assert.equal(await rows(), (before ?? 0) + 1);
  });

  it('shows a spend key only its own budget, and those below it if it may delegate', async () => {
    const root = await makeBudget(api, owner.consumerKey, { limit: 1, mayDelegate: true });
    const [above, atRoot] = [await newKey(budget.id), await newKey(root.id, 'at root')];
    const leaf = await makeBudget(api, owner.consumerKey, { parentId: root.id });
    const atLeaf = await newKey(leaf.id, 'at leaf');
    const below = await makeBudget(api, owner.consumerKey, { parentId: leaf.id });
    const atBelow = await newKey(below.id, 'at below');
    for (const { key } of [atRoot, atLeaf, atBelow]) await spend(api, seller, key, 5);
    const all = ['below', 'leaf', 'root'].map((name) => `at ${name}: spend_limit_reached 1`);
    assert.deepEqual(await countsOf(owner.consumerKey, 3, root.id), all);
    assert.deepEqual(await countsOf(atRoot.key, 3, root.id), all);
    assert.deepEqual(await countsOf(atRoot.key, 2, leaf.id), all.slice(0, 2));
    assert.deepEqual(await countsOf(atLeaf.key, 1, leaf.id), [all[1]]);
    for (const [key, id] of [
      [atLeaf.key, root.id],
      [atLeaf.key, below.id],
      [above.key, root.id],
      [seller.consumerKey, root.id],
    ] as const) {
      assertError(await ask(key, id), 404, 'not_found');
    }
    assertError(await ask(owner.developerKey, root.id), 401, 'invalid_api_key');
  });

  it('keeps test mode apart from live mode', async () => {
    const test = await testSideOf(api, api.databaseUrl, owner, 10);
    const tested = await makeBudget(api, test.consumerKey);
    const { key } = await makeKey(api, test.consumerKey, tested.id, { name: 'tested' });
    assert.equal((await spend(api, test, key, 0.990403)).status, 402);
    assert.deepEqual(await countsOf(test.consumerKey, 1, tested.id), [
      'tested: spend_limit_reached 1',
    ]);
    assertError(await ask(owner.consumerKey, tested.id), 404, 'not_found');
  });

  it('adds up over processes and hours, and is deleted after 30 days', async () => {
    const { key } = await newKey();
    const now = Date.now();
    for (const writing of [recorder(), recorder()]) {
      refuse(writing, key, now - 31 * 24 * HOUR_MS);
      refuse(writing, key, now - 2 * HOUR_MS);
      refuse(writing, key, now);
      await writing.stop();
    }
    await deleteOldRefusals(database);
    const [found, ...others] = await list(owner.consumerKey, budget.id, '?hours=720');
    assert.deepEqual([found?.count, others], [4, []]);
    assert.equal(Date.parse(found?.lastAt ?? ''), now);
    assert.equal((await list(owner.consumerKey, budget.id, '?hours=1'))[0]?.count, 2);
  });

  it('counts for other developers while one names any number of unknown keys', async () => {
    const { key } = await newKey();
    const writing = recorder();
    const before = await rows();
    for (let n = 0; n < 5_000; n += 1) refuse(writing, `unknown ${n}`);
    refuse(writing, key);
    refuse(writing, key, Date.now(), NO_DEVELOPER.replace('01a1', '01a2'));
    await writing.stop();
    assert.equal((await list(owner.consumerKey))[0]?.count, 1);
    assert.equal(await rows(), (before ?? 0) + 1);
  });

  it('gathers at most 2,000 pairs of a key and a code, no matter how many developers are refused', () => {
    const gathered = new KeyRefusals();
    for (let n = 0; n < 3_000; n += 1) {
      const refusal = { code: 'invalid_api_key', keyHash: `${n}` } as const;
      gathered.add({ ...refusal, developerId: `${n % 100}` }, 0, 0);
    }
    assert.equal(gathered.take().length, 2_000);
    assert.equal(gathered.take().length, 0);
  });

  it('stores no more keys of an account in an hour once a thousand are stored', async () => {
    const [known, late] = [await newKey(), await newKey()];
    const writing = recorder();
    const now = Date.now();
    refuse(writing, known.key, now);
    await writing.write();
    await api.sql.query(`
      insert into farebox.key_refusals (ledger, consumer_id, hour, spend_key, code, count, last_at)
      select ledger, consumer_id, hour, 1000 + n, 'x', 1, now()
      from generate_series(1, 999) n, (
        select ledger, consumer_id, hour from farebox.key_refusals order by last_at desc limit 1
      ) r`);
    refuse(writing, known.key, now);
    refuse(writing, late.key, now);
    await writing.stop();
    const found = await list(owner.consumerKey);
    assert.deepEqual(
      found.map(({ keyId, count }) => [keyId, count]),
      [[known.id, 2]],
    );
  });

  it('counts a refused request for an approval', async () => {
    const { key } = await newKey();
    const body = { apiKey: key, tool: 'search', amount: 1 };
    const asked = await call(api, 'POST', '/v1/approvals', { key: seller.developerKey, body });
    assertError(asked, 409, 'approval_not_needed');
    assert.deepEqual(await countsOf(owner.consumerKey, 1), ['agent: approval_not_needed 1']);
  });

  it('stores a thousand rows of an account in an hour, even if one write has more', async () => {
    const { id } = await newKey();
    await api.sql.query(`
      insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
      select uuidv7(), sha256(convert_to('many ' || n, 'UTF8')), account_id, ledger, consumer_id, 1000 + n, budget, path, 'xxxx'
      from farebox.spend_keys, generate_series(1, 1100) n where id = '${uuidOf('key', id) ?? ''}'`);
    const writing = recorder();
    const before = (await rows()) ?? 0;
    for (let n = 1; n <= 1_100; n += 1) {
      const developerId = `01a1fd64-55e5-7aa3-b31e-95f51a4813${String(10 + (n % 10))}`;
      refuse(writing, `many ${n}`, Date.now(), developerId);
    }
    await writing.stop();
    assert.equal(await rows(), before + 1_000);
  });
});
