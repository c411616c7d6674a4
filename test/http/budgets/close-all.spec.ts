/** `farebox budget close-all`, after a consumer key has leaked: no spend key of the account can be charged any more. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { AccountKeysReply } from '../../../src/schemas/keys.ts';
import { openTestApi } from '../../support/api.ts';
import { makeBudget, makeKey, showBudget, spend } from '../../support/budget-requests.ts';
import { place } from '../../support/hold-requests.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { farebox, until } from '../../support/stack.ts';

describe('farebox budget close-all', () => {
  const api = openTestApi();

  it('ends every spend key of one account, with its holds, and no budget of a single developer', async () => {
    const [account, other] = [await api.createAccount(10), await api.createAccount(10)];
    const { consumerKey } = account;
    const cookie = await signIn(api, api.databaseUrl, account.email);
    const limited = await call(api, 'PATCH', '/v1/account-keys', {
      headers: { cookie, origin: api.url },
      body: { developerDayLimit: 5 },
    });
    bodyOf(limited, 200, AccountKeysReply);
    bodyOf(await charge(api, account, { amount: 1 }), 201, ChargeReply);
    const keys: string[] = [];
    const roots: string[] = [];
    for (const name of ['first', 'second', 'third']) {
      const root = await makeBudget(api, consumerKey, { name, mayDelegate: true });
      const below = await makeBudget(api, consumerKey, { name, parentId: root.id });
      roots.push(root.id);
      for (const { id } of [root, below]) keys.push((await makeKey(api, consumerKey, id)).key);
    }
    for (const key of keys) bodyOf(await spend(api, account, key, 0.5), 201, ChargeReply);
    await place(api, { ...account, consumerKey: keys[0] ?? '' }, { amount: 2 });
    const otherBudget = await makeBudget(api, other.consumerKey);

    const closeAll = async () =>
      JSON.parse(
        await farebox(['budget', 'close-all', account.email, '--release-holds', '--json'], api),
      ) as unknown;
    assert.deepEqual(await closeAll(), { closed: 3 });
    for (const key of keys) {
      await until(async () => (await spend(api, account, key, 0.5)).status === 401);
    }
    assert.equal((await showBudget(api, consumerKey, roots[0] ?? '')).status, 'closed');
    const balance = await call(api, 'GET', '/v1/balance', { key: consumerKey });
    assert.equal(bodyOf(balance, 200, BalanceReply).balance, 6);
    bodyOf(await charge(api, account, { amount: 1 }), 201, ChargeReply);
    assert.equal((await showBudget(api, other.consumerKey, otherBudget.id)).status, 'active');
    const { rows } = await api.sql.query(
      `select subject_id as id from farebox.audit_entries where action = 'budget.closed' order by number`,
    );
    assert.deepEqual(
      rows,
      roots.map((id) => ({ id: uuidOf('budget', id) })),
    );
    assert.deepEqual(await closeAll(), { closed: 0 });
  });
});
