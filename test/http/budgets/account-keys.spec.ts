/** Keys of an account that its owner closed for charging, or gave a daily limit for each developer. */
import assert from 'node:assert/strict';
import { BUDGETS_MAX, SPEND_KEYS_MAX } from '../../../src/domain/budget.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { BudgetsReply, SpendKeysReply } from '../../../src/schemas/budgets.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { AccountKeysReply, KeysReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import {
  ask as askApproval,
  decide,
  tryAsk,
  untilDecided,
} from '../../support/approval-requests.ts';
import { proveBooks } from '../../support/books.ts';
import {
  changeBudget,
  closeAsOwner,
  makeBudget,
  makeKey,
  spend,
} from '../../support/budget-requests.ts';
import { askCapture, askHold, capture, place } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { until, type Server } from '../../support/stack.ts';
import { untilDayIsYoung } from '../../support/until-hour-is-young.ts';

describe('the keys of an account', () => {
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
    // Much more than the charges that succeed before every process knows of a limit.
    account = await api.createAccount(10_000);
    key = account.consumerKey;
    const cookie = await signIn(api, api.databaseUrl, account.email);
    headers = { cookie, origin: api.url };
  });

  const ask = (body: object) => call(api, 'PATCH', '/v1/account-keys', { headers, body });
  const set = async (body: object) => bodyOf(await ask(body), 200, AccountKeysReply);
  const shown = async () =>
    bodyOf(await call(api, 'GET', '/v1/account-keys', { headers }), 200, AccountKeysReply);
  /** By the account's own key, to one of two developers, through one of two servers. */
  const pay = (amount: number, by = account, server: { readonly url: string } = api) =>
    charge(server, { ...by, consumerKey: key }, { amount, tool: 'search' });
  /** Until a server knows of a daily limit below this amount. */
  const limited = (amount: number, server?: Server) =>
    until(async () => {
      const { body } = await pay(amount, account, server);
      return (body as { error?: { code: string } }).error?.code === 'spend_limit_reached';
    });
  const balance = async () =>
    bodyOf(await call(api, 'GET', '/v1/balance', { key }), 200, BalanceReply).balance;
  const budgets = async () =>
    bodyOf(await call(api, 'GET', '/v1/budgets', { key }), 200, BudgetsReply).budgets;

  it('can be charged without a daily limit unless their owner says otherwise', async () => {
    assert.deepEqual(await shown(), { charge: 'open', developerDayLimit: null });
    assert.equal((await pay(60)).status, 201);
    assert.deepEqual(await budgets(), []);
  });

  it('that are closed pay nothing on any server, while spend keys still pay', async () => {
    const { id } = await makeBudget(api, key, { limit: 5 });
    const { key: spendKey } = await makeKey(api, key, id);
    const made = { 'idempotency-key': `before ${id}` };
    const before = bodyOf(await charge(api, account, { amount: 1 }, made), 201, ChargeReply);
    assert.equal((await pay(1, account, other)).status, 201);
    assert.deepEqual(await set({ charge: 'closed' }), {
      charge: 'closed',
      developerDayLimit: null,
    });
    for (const server of [api, other]) {
      await until(async () => (await pay(1, account, server)).status === 403);
      assertError(await pay(1, account, server), 403, 'account_keys_closed', 'apiKey');
      assertError(await askHold(server, account), 403, 'account_keys_closed', 'apiKey');
      assert.equal((await spend(server, account, spendKey, 0.5)).status, 201);
    }
    // They still make budgets and spend keys, as docs/budgets.md says.
    const later = await makeKey(api, key, (await makeBudget(api, key)).id);
    assert.equal((await spend(api, account, later.key, 0.5)).status, 201);
    // What was made is still answered, and the key still reads.
    const retry = await charge(api, account, { amount: 1 }, made);
    assert.deepEqual(bodyOf(retry, 201, ChargeReply), before);
    assert.ok((await balance()) < 9_998);
    await set({ charge: 'open' });
    for (const server of [api, other]) {
      await until(async () => (await pay(1, account, server)).status === 201);
    }
  });

  it("never exceed a developer's daily limit, even when many charges arrive at once", async () => {
    assert.equal((await pay(7)).status, 201);
    await set({ developerDayLimit: 5 });
    for (const server of [api, other]) await limited(5.000001, server);
    const start = await balance();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        pay(0.3, n % 3 === 0 ? stranger : account, n % 2 ? other : api),
      ),
    );
    const paid = (by: number) =>
      answers.filter(({ status }, n) => status === 201 && (n % 3 === 0 ? 0 : 1) === by).length;
    // 16 of 40 fit into $5.00; of the stranger's, 16 of 20.
    assert.deepEqual([paid(1), paid(0)], [16, 16]);
    assert.equal(Math.round(((await balance()) - start) * 1e6), -32 * 300_000);
    const [first] = (await budgets()).filter(({ developers }) =>
      developers?.includes(account.developerId),
    );
    assert.deepEqual([first?.used, first?.window?.limit, first?.remaining], [4.8, 5, 0.2]);
    const refused = await pay(0.3);
    assertError(refused, 402, 'spend_limit_reached', undefined, {
      budgetId: first?.id ?? '',
      scope: 'window',
      limit: 5,
      remaining: 0.2,
      resetsAt: first?.window?.resetsAt ?? '',
      developerId: account.developerId,
      tool: 'search',
      required: 0.3,
    });
  });

  it('within a daily limit count holds, batches and refunds, and a developer can be given more, or nothing', async () => {
    await set({ developerDayLimit: 2 });
    await limited(2.000001);
    const hold = await place(api, account, { amount: 1.5 });
    assert.equal((await pay(1)).status, 402);
    await capture(api, account, hold.id, { amount: 0.5 });
    const charges = [1, 0.5, 0.25].map((amount) => ({ apiKey: key, tool: 'search', amount }));
    const batch = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body: { charges },
    });
    const { results } = bodyOf(batch, 200, ChargeBatchReply);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 201, 402],
    );
    const { id } = results[0] as unknown as { id: string };
    const refund = { key: account.developerKey, body: {} };
    assert.equal((await call(api, 'POST', `/v1/charges/${id}/refund`, refund)).status, 201);
    assert.equal((await pay(1)).status, 201);
    assert.equal((await pay(0.01)).status, 402);
    const [budget] = await budgets();
    const budgetId = budget?.id ?? '';
    await changeBudget(api, key, budgetId, { window: { per: 'day', limit: 9 } });
    assert.equal((await pay(7)).status, 201);
    // One limit for all again.
    await set({ developerDayLimit: 9.5 });
    assert.equal((await pay(0.6)).status, 402);
    assert.equal((await pay(0.5)).status, 201);
    await closeAsOwner(api, headers, budgetId);
    await until(async () => (await pay(0.01)).status === 403);
    assertError(await pay(0.01), 403, 'developer_not_allowed', undefined, { budgetId });
    assert.equal((await pay(0.01, stranger)).status, 201);
    // Nobody holds the key of such a budget, so nobody sees one.
    const keys = await call(api, 'GET', `/v1/budgets/${budgetId}/keys`, { key });
    assert.deepEqual(bodyOf(keys, 200, SpendKeysReply).keys, []);
  });

  for (const [which, limit, fits, tooMuch] of [
    ['lowered', 1, 0.9, 3],
    ['raised', 9, 6, 4],
  ] as const) {
    it(`keep the limit that their owner ${which} for one developer until the daily limit is set again`, async () => {
      await set({ developerDayLimit: 5 });
      await limited(5.000001);
      const [budget] = await budgets();
      await changeBudget(api, key, budget?.id ?? '', { window: { per: 'day', limit } });
      assert.deepEqual(await set({ charge: 'open' }), { charge: 'open', developerDayLimit: 5 });
      assert.equal((await budgets())[0]?.window?.limit, limit);
      assert.equal((await pay(fits)).status, 201);
      assert.equal((await pay(tooMuch)).status, 402);
      await set({ developerDayLimit: 5 });
      assert.equal((await budgets())[0]?.window?.limit, 5);
    });
  }

  it('that are closed or have a daily limit pay no more for a hold than it reserves', async () => {
    const overflow = { amount: 20, over: 'overflow' };
    const plain = await place(api, account, { amount: 1 });
    const ended = await place(api, account, { amount: 1 });
    await set({ developerDayLimit: 5 });
    await limited(5.000001);
    const before = await balance();
    const counted = await place(api, account, { amount: 1 });
    // Placed before the daily limit, so no budget would count the excess.
    const refused = await askCapture(api, account, plain.id, overflow);
    assertError(refused, 402, 'exceeds_hold', 'amount', { remaining: 1 });
    await capture(api, account, counted.id, { amount: 2, over: 'overflow', final: false });
    const last = await place(api, account, { amount: 1 });
    await set({ charge: 'closed' });
    for (const { id } of [plain, last]) {
      const answer = await askCapture(api, account, id, { amount: 1.5, over: 'overflow' });
      assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 1 });
      await capture(api, account, id, { amount: 1 });
    }
    await set({ charge: 'open', developerDayLimit: null });
    await capture(api, account, ended.id, { amount: 1 });
    assert.equal(Math.round((before - (await balance())) * 1e6), 3_000_000);
  });

  for (const developerDayLimit of [null, 30]) {
    it(`that have ended pay no more for a hold than it reserves: limit ${developerDayLimit}`, async () => {
      const overflow = { amount: 2, over: 'overflow' };
      await set({ developerDayLimit });
      if (developerDayLimit !== null) await limited(developerDayLimit + 0.000001);
      const placed = [
        await place(api, account, { amount: 1 }),
        await place(api, account, { amount: 1 }),
      ];
      const listed = await call(api, 'GET', '/v1/keys', { headers });
      const [own] = bodyOf(listed, 200, KeysReply).keys.filter(({ kind }) => kind === 'consumer');
      const rolled = await call(api, 'POST', `/v1/keys/${own?.id}/roll`, { headers, body: {} });
      key = bodyOf(rolled, 201, NewKeyReply).key;
      account = { ...account, consumerKey: key };
      // The first is placed before the key ends, the second by a process that does not know it yet.
      for (const [n, { id }] of placed.entries()) {
        if (n === 1) await endedBefore(id, '1 second');
        const answer = await askCapture(api, account, id, overflow);
        assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 1 });
        await capture(api, account, id, { amount: 1 });
      }
      const fresh = await place(api, account, { amount: 1 });
      await endedBefore(fresh.id, '1 hour');
      await capture(api, account, fresh.id, overflow);
      const beside = await place(api, account, { amount: 1 });
      await api.sql.query(
        `update farebox.api_keys set revoked_at = now(),
           expires_at = (select placed_at from farebox.holds where id = $1) - interval '1 hour'
         where revoked_at is not null`,
        [uuidOf('hold', beside.id)],
      );
      await capture(api, account, beside.id, overflow);
    });
  }

  /** As if all keys that have ended had ended this long before the hold was placed. */
  async function endedBefore(holdId: string, time: string): Promise<void> {
    await api.sql.query(
      `update farebox.api_keys set revoked_at = (select placed_at from farebox.holds where id = $1) - $2::interval
       where revoked_at is not null`,
      [uuidOf('hold', holdId), time],
    );
  }

  it('with a daily limit pay no developer for which they can make no budget, as they leave the last ones to the owner', async () => {
    const { id } = await makeBudget(api, key);
    await api.sql.query(
      `with last as (
        update farebox.budgets b set number = $2 from farebox.budget_details d
        where d.id = $1 and b.ledger = d.ledger and b.consumer_id = d.consumer_id and b.number = d.number
      )
      update farebox.budget_details set number = $2, path = array[$2::int] where id = $1`,
      [uuidOf('budget', id), (BUDGETS_MAX * 9) / 10],
    );
    await set({ developerDayLimit: 5 });
    await until(async () => (await pay(0.01)).status === 403);
    assertError(await pay(5.000001), 403, 'account_keys_closed', 'apiKey');
    assertError(await tryAsk(api, account, key, 1), 403, 'account_keys_closed', 'apiKey');
  });

  it('with a daily limit pay no developer for whose budget they can make no key, and make no budget', async () => {
    const { id } = await makeBudget(api, key);
    const made = await makeKey(api, key, id);
    await api.sql.query(`update farebox.spend_keys set number = $2 where id = $1`, [
      uuidOf('key', made.id),
      (SPEND_KEYS_MAX * 9) / 10,
    ]);
    await set({ developerDayLimit: 5 });
    await until(async () => (await pay(0.01)).status === 403);
    assertError(await pay(0.01), 403, 'account_keys_closed', 'apiKey');
    assert.equal((await budgets()).length, 1);
  });

  it('with a daily limit can ask for more, and closed ones cannot ask', async () => {
    await set({ developerDayLimit: 2 });
    await limited(2.000001);
    const { status, body } = await tryAsk(api, account, key, 3);
    assert.equal(status, 201);
    await decide(api, key, (body as { id: string }).id, 'once');
    await until(async () => (await pay(3)).status === 201);
    assert.equal((await pay(3)).status, 402);
    const [budget] = await budgets();
    await closeAsOwner(api, headers, budget?.id ?? '');
    await until(async () => (await pay(0.01)).status === 403);
    const closed = { budgetId: budget?.id ?? '' };
    const asked = await tryAsk(api, account, key, 3);
    assertError(asked, 403, 'developer_not_allowed', undefined, closed);
    await set({ charge: 'closed' });
    const { developerKey } = account;
    const byDeveloper = { apiKey: key, developerId: undefined };
    const isClosed = async () => (await pay(0.01, stranger)).status === 403;
    await until(isClosed);
    assertError(
      await tryAsk(api, account, developerKey, 1_000, byDeveloper),
      403,
      'account_keys_closed',
      'apiKey',
    );
    assertError(await tryAsk(api, account, key, 1_000), 403, 'account_keys_closed', 'apiKey');
  });

  it('end a request for more when the daily limit is removed', async () => {
    await set({ developerDayLimit: 2 });
    await limited(2.000001);
    const { id } = await askApproval(api, account, key, 3);
    const waiting = untilDecided(api, key, id);
    await set({ developerDayLimit: null });
    const { status, decision } = await waiting;
    assert.deepEqual([status, decision], ['approved', 'resolved']);
    assert.equal((await pay(3, account, other)).status, 201);
  });

  it('with a new daily limit forget a limit that an approval raised', async () => {
    await set({ developerDayLimit: 5 });
    await limited(5.000001);
    const { body } = await tryAsk(api, account, key, 50);
    await decide(api, key, (body as { id: string }).id, 'raise', { limit: 60 });
    assert.equal((await budgets())[0]?.window?.limit, 60);
    await set({ developerDayLimit: 7 });
    assert.equal((await budgets())[0]?.window?.limit, 7);
    await proveBooks(api.env, { processor: false, only: ['approvals'] });
  });

  it('make no event of the key that nobody holds', async () => {
    await set({ developerDayLimit: 2 });
    await limited(2.000001);
    const { rows } = await api.sql.query(
      `select e.data from farebox.events e join farebox.accounts a on a.id = e.account_id
      where a.email = $1 and e.type like 'key.%' and e.data ->> 'budgetId' is not null`,
      [account.email],
    );
    assert.deepEqual(rows, []);
  });

  for (const [body, code, param] of [
    [{ charge: 'sometimes' }, 'invalid_request', 'charge'],
    [{ developerDayLimit: -1 }, 'invalid_amount', 'developerDayLimit'],
    [{ developerDayLimit: 0.0000001 }, 'invalid_amount', 'developerDayLimit'],
    [{ limit: 5 }, 'invalid_request', 'limit'],
  ] as const) {
    it(`are not changed by ${JSON.stringify(body)}`, async () => {
      assertError(await ask(body), 400, code, param);
      assert.deepEqual(await shown(), { charge: 'open', developerDayLimit: null });
    });
  }

  it('change by their owner alone, not by a key that every tool server has', async () => {
    for (const method of ['GET', 'PATCH'] as const) {
      const answer = await call(api, method, '/v1/account-keys', {
        key,
        ...(method === 'PATCH' && { body: { charge: 'closed' } }),
      });
      assertError(answer, 401, 'session_required');
    }
  });
});
