/** The closed budget of a single developer that the owner of an account reopens: keys of the account pay the developer again. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { AuditLogReply } from '../../../src/schemas/audit-log.ts';
import { BudgetReply, BudgetsReply } from '../../../src/schemas/budgets.ts';
import { AccountKeysReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { ask, showApproval } from '../../support/approval-requests.ts';
import { proveBooks } from '../../support/books.ts';
import {
  closeAsOwner,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { farebox, until, type Server } from '../../support/stack.ts';
import { untilDayIsYoung } from '../../support/until-hour-is-young.ts';

const ROUNDS = 20;
/** More than are ended in one transaction. */
const MANY = 130;

describe('a developer whose budget was reopened', () => {
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
  const untilAnswered = async (status: number, amount: number, by = account) => {
    for (const server of api.servers) {
      await until(async () => (await pay(amount, by, server)).status === status);
    }
  };
  /** Sets a limit of $2.00 for each developer, and returns the id of the budget that this one has then. */
  const limited = async (by = account) => {
    await set(2);
    await until(async () => (await pay(2.000001, by)).status === 402);
    const listed = bodyOf(await call(api, 'GET', '/v1/budgets', { key }), 200, BudgetsReply);
    const budget = listed.budgets.find(({ developers }) => developers?.includes(by.developerId));
    assert.equal(budget?.limitsConsumerKeys, true);
    return budget.id;
  };
  const tryReopen = (id: string, server: { readonly url: string } = api): Promise<Answer> =>
    call(server, 'POST', `/v1/budgets/${id}/reopen`, {
      headers: { ...headers, origin: server.url },
    });
  const tryClose = (id: string) => call(api, 'POST', `/v1/budgets/${id}/close`, { headers });
  const reopen = async (id: string) => bodyOf(await tryReopen(id), 200, BudgetReply);
  /** No server looks back so far for what changed. */
  const closeLongAgo = async (id: string) => {
    await closeAsOwner(api, headers, id);
    await untilAnswered(403, 0.1);
    await api.sql.query(
      `with details as (
        update farebox.budget_details set changed_at = now() - interval '1 hour' where id = $1 returning consumer_id
      )
      update farebox.api_keys set changed_at = now() - interval '1 hour'
      where account_id = (select a.id from farebox.accounts a join details using (consumer_id))`,
      [uuidOf('budget', id)],
    );
    await untilAnswered(403, 0.1);
  };
  const entries = async () => {
    const answer = await call(api, 'GET', '/v1/audit-log?limit=100', { headers });
    return bodyOf(answer, 200, AuditLogReply).entries;
  };
  const blocks = async () => {
    const { rows } = await api.sql.query<{ blocks: boolean }>(
      'select blocks_developers as blocks from farebox.accounts where consumer_id = $1',
      [uuidOf('consumer', account.consumerId)],
    );
    return rows[0]?.blocks;
  };

  it('is paid by every server within its limit, which went on counting, and can be blocked again', async () => {
    const id = await limited();
    assert.equal((await pay(1.5)).status, 201);
    const before = await showBudget(api, key, id);
    for (const _ of ['once', 'twice']) {
      await closeLongAgo(id);
      assert.deepEqual(await reopen(id), before);
      await untilAnswered(402, 0.6);
    }
    assert.equal((await pay(0.25)).status, 201);
    assert.equal((await pay(0.25, account, other)).status, 201);
    await untilAnswered(402, 0.000001);
    await proveBooks(api.env, { processor: false, only: ['budgets'] });
  });

  it('is paid without a limit if the limit was removed meanwhile', async () => {
    const id = await limited();
    await set(null);
    await untilAnswered(201, 10);
    await closeLongAgo(id);
    await reopen(id);
    await untilAnswered(201, 10);
    await closeAsOwner(api, headers, id);
    await untilAnswered(403, 1);
  });

  it('is not another developer, whose budget stays closed', async () => {
    const [id, others] = [await limited(), await limited(stranger)];
    for (const each of [id, others]) await closeAsOwner(api, headers, each);
    await set(null);
    await untilAnswered(403, 1, stranger);
    await reopen(id);
    await untilAnswered(201, 10);
    for (const server of api.servers) {
      assertError(await pay(1, stranger, server), 403, 'developer_not_allowed', undefined, {
        budgetId: others,
      });
    }
    assert.equal(await blocks(), true);
    await reopen(others);
    await untilAnswered(201, 1, stranger);
    assert.equal(await blocks(), false);
  });

  it('is in the audit log once, even if the owner asks twice', async () => {
    const id = await limited();
    await reopen(id);
    await closeAsOwner(api, headers, id);
    const reopened = await reopen(id);
    assert.deepEqual(await reopen(id), reopened);
    const found = (await entries()).filter(({ subjectId }) => subjectId === id);
    assert.deepEqual(
      found.map(({ action }) => action),
      ['budget.reopened', 'budget.closed', 'budget.created'],
    );
    const [{ details } = assert.fail(), closed] = found;
    assert.equal((details['by'] as { kind: string }).kind, 'session');
    assert.deepEqual(details['before'], { closedAt: closed?.details['closedAt'] });
    await proveBooks(api.env, { processor: false, only: ['audit-log'] });
  });

  it('is reopened by its owner or an operator alone', async () => {
    const id = await limited();
    const { key: spendKey } = await makeKey(api, key, (await makeBudget(api, key)).id);
    await closeAsOwner(api, headers, id);
    const path = `/v1/budgets/${id}/reopen`;
    for (const each of [key, spendKey, account.developerKey]) {
      assertError(await call(api, 'POST', path, { key: each }), 401, 'session_required');
    }
    const cookie = await signIn(api, api.databaseUrl, stranger.email);
    const theirs = { headers: { cookie, origin: api.url } };
    assertError(await call(api, 'POST', path, theirs), 404, 'not_found');
    assert.equal((await showBudget(api, key, id)).status, 'closed');
    const printed = await farebox(['budget', 'reopen', id, '--json'], api);
    assert.equal((JSON.parse(printed) as { status: string }).status, 'active');
    await untilAnswered(201, 0.1);
  });

  it('is the only one: any other budget is refused, whether it is open or closed', async () => {
    const { id } = await makeBudget(api, key, { developers: [account.developerId] });
    const below = await makeBudget(api, key, { parentId: await limited() });
    for (const each of [id, below.id]) {
      assertError(await tryReopen(each), 409, 'budget_not_reopenable');
      await closeBudget(api, key, each);
      assertError(await tryReopen(each), 409, 'budget_not_reopenable');
      await assert.rejects(farebox(['budget', 'reopen', each], api), /single developer/);
      assert.equal((await showBudget(api, key, each)).status, 'closed');
    }
  });

  it('does not revive what ended with the budget: its spend keys, budgets below and requests', async () => {
    const id = await limited();
    const below = await makeBudget(api, key, { parentId: id });
    const [inside, deeper] = [await makeKey(api, key, id), await makeKey(api, key, below.id)];
    await api.sql.query(
      `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
       select uuidv7(), sha256(n::text::bytea || uuid_send(k.id)), k.account_id, k.ledger, k.consumer_id, 1000 + n,
         k.budget, k.path, 'many'
       from farebox.spend_keys k, generate_series(1, $2::int) n where k.id = $1`,
      [uuidOf('key', inside.id), MANY],
    );
    const asked = await ask(api, account, key, 3);
    await closeAsOwner(api, headers, id);
    await reopen(id);
    await untilAnswered(201, 0.1);
    for (const server of api.servers) {
      for (const ended of [inside, deeper]) {
        await until(async () => (await spend(server, account, ended.key, 0.1)).status === 401);
      }
    }
    assert.equal((await showBudget(api, key, below.id)).status, 'closed');
    assert.equal((await showApproval(api, key, asked.id)).status, 'expired');
    const revoked = await api.sql.query(
      `select from farebox.spend_keys k join farebox.budget_details d using (ledger, consumer_id)
       where d.id = $1 and k.budget = d.number and k.developer is null and k.revoked_at is not null`,
      [uuidOf('budget', id)],
    );
    assert.equal(revoked.rowCount, MANY + 1);
    // What is made from then on works.
    const { key: fresh } = await makeKey(api, key, id);
    assert.equal((await spend(api, account, fresh, 0.1)).status, 201);
  });

  it('is paid or refused as its budget says after many closings and reopenings at the same time', async () => {
    const [id, others] = [await limited(), await limited(stranger)];
    for (let round = 0; round < ROUNDS; round += 1) {
      const answers = await Promise.all([
        tryClose(id),
        tryReopen(id, other),
        round % 2 === 0 ? tryClose(others) : tryReopen(others, other),
      ]);
      for (const answer of answers) bodyOf(answer, 200, BudgetReply);
      const shown = await Promise.all([id, others].map((each) => showBudget(api, key, each)));
      assert.equal(
        await blocks(),
        shown.some(({ status }) => status === 'closed'),
      );
    }
    await closeAsOwner(api, headers, id);
    await untilAnswered(403, 0.01);
    await reopen(id);
    await untilAnswered(201, 0.01);
    await proveBooks(api.env, { processor: false, only: ['budgets', 'audit-log'] });
  });
});
