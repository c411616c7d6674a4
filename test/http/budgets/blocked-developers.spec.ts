/** Developers whose budgets the owner of an account has closed: keys of the account do not pay them. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { BudgetsReply } from '../../../src/schemas/budgets.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { AccountKeysReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { tryAsk } from '../../support/approval-requests.ts';
import { proveBooks } from '../../support/books.ts';
import {
  closeAsOwner,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { askCapture, askHold, capture, place } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { farebox, until, type Server } from '../../support/stack.ts';
import { untilDayIsYoung } from '../../support/until-hour-is-young.ts';

describe('a developer whose budget was closed', () => {
  const api = openTestApi({ servers: 2 });
  let other: Server;
  let account: TestAccount;
  let stranger: TestAccount;
  let key: string;
  let headers: Readonly<Record<string, string>>;

  before(async () => {
    other = api.servers[1] as Server;
    stranger = await api.createAccount(0);
  });
  beforeEach(untilDayIsYoung);
  beforeEach(async () => {
    account = await api.createAccount(10_000);
    key = account.consumerKey;
    const cookie = await signIn(api, api.databaseUrl, account.email);
    headers = { cookie, origin: api.url };
  });

  const set = async (developerDayLimit: number | null) => {
    const body = { developerDayLimit };
    bodyOf(await call(api, 'PATCH', '/v1/account-keys', { headers, body }), 200, AccountKeysReply);
  };
  const pay = (amount: number, by = account, server: { readonly url: string } = api) =>
    charge(server, { ...by, consumerKey: key }, { amount, tool: 'search' });
  /** Sets a limit for each developer, and returns the id of the budget that the developer has then. */
  const limited = async () => {
    await set(2);
    await until(async () => (await pay(2.000001)).status === 402);
    const listed = await call(api, 'GET', '/v1/budgets', { key });
    return bodyOf(listed, 200, BudgetsReply).budgets[0]?.id ?? '';
  };

  it('is refused by keys of the account, with a limit for each developer or without', async () => {
    const early = await place(api, account, { amount: 1 });
    const budgetId = await limited();
    await closeAsOwner(api, headers, budgetId);
    await until(async () => (await pay(0.01)).status === 403);
    await set(null);
    // A server that lets the stranger pay more than the limit has learned of its removal.
    for (const server of [api, other]) {
      await until(async () => (await pay(10, stranger, server)).status === 201);
      for (const refused of [await pay(1, account, server), await askHold(server, account)]) {
        assertError(refused, 403, 'developer_not_allowed', undefined, { budgetId });
      }
      const asked = await tryAsk(server, account, key, 3);
      assertError(asked, 403, 'developer_not_allowed', undefined, { budgetId });
    }
    const charges = [1, 2].map((amount) => ({ apiKey: key, tool: 'search', amount }));
    const { developerKey } = account;
    const batch = await call(api, 'POST', '/v1/charges/batch', {
      key: developerKey,
      body: { charges },
    });
    const { results } = bodyOf(batch, 200, ChargeBatchReply);
    assert.deepEqual(
      results.map(({ status }) => status),
      [403, 403],
    );
    // A hold that was placed before can be captured, but not for more than it reserved.
    const overflow = await askCapture(api, account, early.id, { amount: 2, over: 'overflow' });
    assertError(overflow, 402, 'exceeds_hold', 'amount', { remaining: 1 });
    await capture(api, account, early.id, { amount: 1 });
    await set(5);
    await until(async () => (await pay(5.000001, stranger)).status === 402);
    assertError(await pay(0.01), 403, 'developer_not_allowed', undefined, { budgetId });
    // A spend key, whose budget says who may charge it, still pays.
    const { key: spendKey } = await makeKey(api, key, (await makeBudget(api, key)).id);
    assert.equal((await spend(api, account, spendKey, 0.5)).status, 201);
    await proveBooks(api.env, { processor: false, only: ['budgets'] });
  });

  it('is refused by every server when its budget is closed after the limit was removed', async () => {
    const budgetId = await limited();
    await set(null);
    for (const server of [api, other]) {
      await until(async () => (await pay(10, account, server)).status === 201);
    }
    await closeAsOwner(api, headers, budgetId);
    for (const server of [api, other]) {
      await until(async () => (await pay(1, account, server)).status === 403);
      assert.equal((await pay(1, stranger, server)).status, 201);
    }
  });

  it('is refused when a process of the previous release has closed its budget', async () => {
    const budgetId = await limited();
    await api.sql.query(
      `with details as (
        update farebox.budget_details set closed_at = now(), changed_at = now()
        where id = $1 and closed_at is null returning ledger, consumer_id, number
      )
      update farebox.budgets b set is_closed = true from details d
      where b.ledger = d.ledger and b.consumer_id = d.consumer_id and b.number = d.number`,
      [uuidOf('budget', budgetId)],
    );
    await set(null);
    await until(async () => (await pay(10, stranger)).status === 201);
    await until(async () => (await pay(1)).status === 403);
    assertError(await pay(1), 403, 'developer_not_allowed', undefined, { budgetId });
    await proveBooks(api.env, { processor: false, only: ['budgets'] });
  });

  it('is one that the owner or an operator closed, not a key that every tool server has', async () => {
    const budgetId = await limited();
    for (const body of [{}, { releaseHolds: true }]) {
      const answer = await call(api, 'POST', `/v1/budgets/${budgetId}/close`, { key, body });
      assertError(answer, 401, 'session_required');
    }
    assert.equal((await showBudget(api, key, budgetId)).status, 'active');
    await set(null);
    await until(async () => (await pay(10)).status === 201);
    await farebox(['budget', 'close', budgetId], api);
    await until(async () => (await pay(1)).status === 403);
    // Not even to release what is left to release.
    const again = await call(api, 'POST', `/v1/budgets/${budgetId}/close`, { key });
    assertError(again, 401, 'session_required');
  });
});
