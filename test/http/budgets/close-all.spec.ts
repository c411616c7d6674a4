/** `farebox budget close-all`, after a consumer key has leaked: no spend key of the account can be charged any more. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { BudgetsReply } from '../../../src/schemas/budgets.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { AccountKeysReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import {
  changeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { place } from '../../support/hold-requests.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { farebox, until } from '../../support/stack.ts';

describe('farebox budget close-all', () => {
  const api = openTestApi();

  const closeAll = async ({ email }: TestAccount) =>
    JSON.parse(
      await farebox(['budget', 'close-all', email, '--release-holds', '--json'], api),
    ) as unknown;
  /** Returns the budget of the account's developer. It is made by the first charge that heeds the limit. */
  const limitDeveloper = async (account: TestAccount) => {
    const cookie = await signIn(api, api.databaseUrl, account.email);
    const limited = await call(api, 'PATCH', '/v1/account-keys', {
      headers: { cookie, origin: api.url },
      body: { developerDayLimit: 5 },
    });
    bodyOf(limited, 200, AccountKeysReply);
    return until(async () => {
      const tooMuch = await charge(api, account, { amount: 20 });
      assert.equal(tooMuch.status, 402);
      const listed = await call(api, 'GET', '/v1/budgets', { key: account.consumerKey });
      return bodyOf(listed, 200, BudgetsReply).budgets[0];
    });
  };
  const untilEnded = async (account: TestAccount, keys: readonly string[]) => {
    for (const key of keys) {
      await until(async () => (await spend(api, account, key, 0.5)).status === 401);
    }
  };
  const balanceOf = async ({ consumerKey }: TestAccount) => {
    const balance = await call(api, 'GET', '/v1/balance', { key: consumerKey });
    return bodyOf(balance, 200, BalanceReply).balance;
  };

  it('ends every spend key of one account, with its holds, and no budget of a single developer', async () => {
    const [account, other] = [await api.createAccount(10), await api.createAccount(10)];
    const { consumerKey } = account;
    const ofDeveloper = await limitDeveloper(account);
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

    assert.deepEqual(await closeAll(account), { closed: 3 });
    await untilEnded(account, keys);
    assert.equal((await showBudget(api, consumerKey, roots[0] ?? '')).status, 'closed');
    assert.equal(await balanceOf(account), 6);
    bodyOf(await charge(api, account, { amount: 1 }), 201, ChargeReply);
    assert.equal((await showBudget(api, consumerKey, ofDeveloper.id)).status, 'active');
    assert.equal((await showBudget(api, other.consumerKey, otherBudget.id)).status, 'active');
    const { rows } = await api.sql.query(
      `select subject_id as id from farebox.audit_entries where action = 'budget.closed' order by number`,
    );
    assert.deepEqual(
      rows,
      roots.map((id) => ({ id: uuidOf('budget', id) })),
    );
    assert.deepEqual(await closeAll(account), { closed: 0 });
  });

  it('ends the spend keys that were made in and below the budget of a single developer', async () => {
    const account = await api.createAccount(10);
    const { consumerKey } = account;
    const ofDeveloper = await limitDeveloper(account);
    await changeBudget(api, consumerKey, ofDeveloper.id, { mayDelegate: true });
    const inside = await makeKey(api, consumerKey, ofDeveloper.id);
    const below = await makeBudget(api, inside.key, { mayDelegate: true });
    const keyBelow = await makeKey(api, inside.key, below.id);
    const deepest = await makeBudget(api, keyBelow.key);
    const keys = [inside.key, keyBelow.key, (await makeKey(api, keyBelow.key, deepest.id)).key];
    for (const key of keys) bodyOf(await spend(api, account, key, 0.5), 201, ChargeReply);
    for (const key of keys) await place(api, { ...account, consumerKey: key }, { amount: 0.5 });

    assert.deepEqual(await closeAll(account), { closed: 1 });
    await untilEnded(account, keys);
    assert.equal(await balanceOf(account), 8.5);
    assert.equal((await showBudget(api, consumerKey, ofDeveloper.id)).status, 'active');
    assert.equal((await showBudget(api, consumerKey, below.id)).status, 'closed');
    bodyOf(await charge(api, account, { amount: 1 }), 201, ChargeReply);
    const { rows } = await api.sql.query(
      `select action, subject_id as id from farebox.audit_entries
       where action in ('spend_key.revoked', 'budget.closed') and number > (
         select number from farebox.audit_entries where subject_id = $1 and action = 'budget.created'
       ) order by number`,
      [uuidOf('budget', ofDeveloper.id)],
    );
    assert.deepEqual(rows, [
      { action: 'spend_key.revoked', id: uuidOf('key', inside.id) },
      { action: 'budget.closed', id: uuidOf('budget', below.id) },
    ]);
    assert.deepEqual(await closeAll(account), { closed: 0 });
  });
});
