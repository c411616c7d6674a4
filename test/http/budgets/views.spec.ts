/** What a developer and the holder of a spend key see and move beyond their own part: nothing. */
import assert from 'node:assert/strict';
import { ENDPOINTS } from '../../../src/http/routes.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { ask, showApproval, tryDecide } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, spend } from '../../support/budget-requests.ts';
import { place } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { takeLease } from '../../support/lease-requests.ts';

describe('one spend key charged by two developers', () => {
  const api = openTestApi();
  let owner: TestAccount;
  let other: TestAccount;
  let spendKey: string;
  let budgetId: string;

  before(async () => {
    owner = await api.createAccount(100);
    other = await api.createAccount(0);
    const settings = { limit: 50, allowLeases: true, developers: null };
    budgetId = (await makeBudget(api, owner.consumerKey, settings)).id;
    spendKey = (await makeKey(api, owner.consumerKey, budgetId, { name: 'Session 17' })).key;
  });

  it('shows each developer its own charges, holds and leases, and nothing of the other or the budget', async () => {
    const seller = { ...owner, consumerKey: spendKey };
    const charged = await spend(api, owner, spendKey, 1.234567, { tool: 'owned' });
    const { id } = bodyOf(charged, 201, ChargeReply);
    const hold = await place(api, seller, { amount: 2.345678, tool: 'owned' });
    const lease = await takeLease(api, owner, spendKey, { amount: 3.456789 });
    const refused = await spend(api, owner, spendKey, 60, { tool: 'owned' });
    assert.equal(refused.status, 402);
    bodyOf(await spend(api, other, spendKey, 0.5, { tool: 'theirs' }), 201, ChargeReply);
    const secrets = [id, hold.id, lease.id, budgetId, 'Session 17', 'owned'];
    const amounts = ['1.234567', '2.345678', '3.456789'];
    const lists = ENDPOINTS.filter(
      ({ method, role, path }) =>
        method === 'get' &&
        (role === 'developer' || role === 'either' || role === 'asker') &&
        !path.includes(':') &&
        // It never ends.
        !path.endsWith('/live'),
    ).map(({ path }) => path);
    assert.ok(lists.length > 8, lists.join());
    for (const path of lists) {
      const { body, headers } = await call(api, 'GET', path, { key: other.developerKey });
      const seen = `${JSON.stringify(body)} ${JSON.stringify([...headers])}`;
      for (const secret of [...secrets, ...amounts]) {
        assert.ok(!seen.includes(secret), `${path} shows ${secret}`);
      }
    }
    for (const path of [`/v1/charges/${id}`, `/v1/holds/${hold.id}`, `/v1/leases/${lease.id}`]) {
      assert.equal((await call(api, 'GET', path, { key: other.developerKey })).status, 404, path);
    }
    for (const path of ['', `/${budgetId}`, `/${budgetId}/usage`, `/${budgetId}/keys`]) {
      const answer = await call(api, 'GET', `/v1/budgets${path}`, { key: other.developerKey });
      assert.equal(answer.status, 401, path);
    }
  });

  it('tops nothing up, even to answer the question of a key below it', async () => {
    const root = await makeBudget(api, owner.consumerKey, { mayDelegate: true });
    const above = await makeKey(api, owner.consumerKey, root.id);
    const leaf = await makeBudget(api, above.key, {});
    const below = await makeKey(api, above.key, leaf.id);
    const { id } = await ask(api, owner, below.key, 1_000);
    assert.equal((await showApproval(api, owner.consumerKey, id)).code, 'insufficient_balance');
    for (const by of [above.key, below.key]) {
      const answer = await tryDecide(api, by, id, { decision: 'top_up', amount: 50 });
      assert.ok([403, 404].includes(answer.status), JSON.stringify(answer.body));
    }
    assertError(await call(api, 'GET', '/v1/balance', { key: above.key }), 401, 'invalid_api_key');
    const { rows } = await api.sql.query(
      'select count(*)::int as n from farebox.top_ups where method <> $1',
      ['manual'],
    );
    assert.deepEqual(rows, [{ n: 0 }]);
  });
});
