/** The balance is never overspent: not by a micro-dollar, and not by two hundred charges at once. */
import assert from 'node:assert/strict';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';

describe('POST /v1/charges: 402', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ servers: 2 });
  });
  after(() => api.stop());

  async function balanceOf(account: TestAccount): Promise<number> {
    const answer = await call(api, 'GET', '/v1/balance', { key: account.consumerKey });
    return bodyOf(answer, 200, BalanceReply).balance;
  }

  async function assertInsufficient(
    { developerId }: TestAccount,
    charging: Promise<Answer>,
    balance: number,
    required: number,
    tool = 'search',
  ): Promise<void> {
    assertError(await charging, 402, 'insufficient_balance', undefined, {
      developerId,
      tool,
      balance,
      required,
      shortfall: Math.round((required - balance) * 1e6) / 1e6,
      topUpUrl: `${api.url}/top-up`,
    });
  }

  it('states the balance, the required amount, the shortfall, and where to top up', async () => {
    const account = await api.createAccount(0.1);
    await assertInsufficient(account, charge(api, account, { amount: 0.3 }), 0.1, 0.3);
    assert.equal(await balanceOf(account), 0.1);
  });

  it('refuses a charge when the balance is one micro-dollar short', async () => {
    const account = await api.createAccount(0.999999);
    await assertInsufficient(account, charge(api, account, { amount: 1 }), 0.999999, 1);
    bodyOf(await charge(api, account, { amount: 0.999999 }), 201, ChargeReply);
    await assertInsufficient(account, charge(api, account, { amount: 0.000001 }), 0, 0.000001);
  });

  it('refuses a charge on an empty balance', async () => {
    const account = await api.createAccount(0);
    await assertInsufficient(account, charge(api, account), 0, 0.02);
  });

  it('makes a smaller charge after a larger one was refused', async () => {
    const account = await api.createAccount(1);
    await assertInsufficient(account, charge(api, account, { amount: 1.5 }), 1, 1.5);
    assert.equal(bodyOf(await charge(api, account, { amount: 1 }), 201, ChargeReply).balance, 0);
  });

  it('refuses the price of a tool that the balance does not cover', async () => {
    const account = await api.createAccount(1);
    const body = { name: 'dear', price: 2 };
    await call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
    await assertInsufficient(
      account,
      charge(api, account, { tool: 'dear', amount: undefined }),
      1,
      2,
      'dear',
    );
  });

  it('makes exactly the hundred covered charges of two hundred at once on two servers', async () => {
    const account = await api.createAccount(1);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        charge(api.servers[n % 2] ?? api, account, { amount: 0.01 }),
      ),
    );
    const made = answers.filter(({ status }) => status === 201);
    assert.equal(made.length, 100);
    // Each left a different balance: $0.99, $0.98 and so on down to $0.00.
    const balances = made.map((answer) => bodyOf(answer, 201, ChargeReply).balance);
    assert.deepEqual(
      balances.toSorted((a, b) => b - a),
      Array.from({ length: 100 }, (_, n) => (99 - n) / 100),
    );
    const refused = answers.filter(({ status }) => status !== 201);
    for (const answer of refused) {
      const { error } = answer.body as { error: { code: string; balance: number } };
      assert.deepEqual([answer.status, error.code], [402, 'insufficient_balance']);
      assert.equal(error.balance, 0);
    }
    assert.equal(await balanceOf(account), 0);
    const { rows } = await api.sql.query(
      'select count(*)::int as count from farebox.charges where consumer_id = $1',
      [account.consumerId.slice('cns_'.length)],
    );
    assert.deepEqual(rows, [{ count: 100 }]);
  });
});
