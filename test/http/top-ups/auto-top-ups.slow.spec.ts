/** Automatic top-ups as an owner sets them up, a charge triggers them, and a consumer key sees them. */
import assert from 'node:assert/strict';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { TopUpsReply } from '../../../src/schemas/top-ups.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { farebox, startStack, until, type Stack } from '../../support/stack.ts';

describe('automatic top-ups', () => {
  let stack: Stack;
  let account: TestAccount;

  before(async () => {
    stack = await startStack();
  });
  beforeEach(async () => {
    account = await createAccount(stack.env, 15);
  });
  after(() =>
    endAll(
      () => proveBooks(stack.env),
      () => stack.stop(),
    ),
  );

  const charge = (amount: number) =>
    call(stack.api, 'POST', '/v1/charges', {
      key: account.developerKey,
      body: { apiKey: account.consumerKey, tool: 'search', amount },
    });
  const balance = async ({ consumerKey: key } = account) =>
    bodyOf(await call(stack.api, 'GET', '/v1/balance', { key }), 200, BalanceReply);
  const topUps = async () => {
    const answer = await call(stack.api, 'GET', '/v1/top-up', { key: account.consumerKey });
    return bodyOf(answer, 200, TopUpsReply).topUps;
  };
  async function autoTopUp(...args: readonly string[]): Promise<object> {
    const command = ['account', 'auto-top-up', account.consumerId, '--json', ...args];
    return JSON.parse(await farebox(command, stack)) as object;
  }
  const ON = ['--threshold', '10', '--amount', '20', '--ceiling', '50'];

  it('are off until the owner sets them up, and then follow a charge that leaves too little', async () => {
    assert.deepEqual(await autoTopUp(), { status: 'off', reason: null });
    bodyOf(await charge(1), 201, ChargeReply);
    assert.deepEqual(await autoTopUp(...ON), {
      status: 'on',
      reason: null,
      threshold: 10,
      amount: 20,
      ceiling: 50,
    });
    bodyOf(await charge(5), 201, ChargeReply);
    await until(async () => (await balance()).balance === 29);
    const [topUp] = await topUps();
    assert.deepEqual(
      [topUp?.status, topUp?.method, topUp?.automatic, topUp?.amount],
      ['completed', 'direct', true, 20],
    );
  });

  it('follow a refused charge, which then succeeds under its key', async () => {
    await autoTopUp(...ON);
    assertError(await charge(30), 402, 'insufficient_balance', undefined, {
      balance: 15,
      developerId: account.developerId,
      tool: 'search',
      required: 30,
      shortfall: 15,
      topUpUrl: `${stack.api.url}/top-up`,
    });
    await until(async () => (await balance()).balance === 35);
    bodyOf(await charge(30), 201, ChargeReply);
  });

  it('stop at their monthly ceiling, and the balance explains it', async () => {
    await autoTopUp('--threshold', '10', '--amount', '20', '--ceiling', '20');
    await charge(6);
    await until(async () => (await balance()).balance === 29);
    await charge(20);
    await until(async () => (await balance()).autoTopUp.status === 'waiting');
    const { autoTopUp: state, balance: left } = await balance();
    assert.deepEqual([state, left], [{ status: 'waiting', reason: 'ceiling_reached' }, 9]);

    await autoTopUp('--threshold', '10', '--amount', '20', '--ceiling', '40');
    assert.deepEqual((await balance()).autoTopUp, { status: 'on', reason: null });
    await charge(1);
    await until(async () => (await balance()).balance === 28);
  });

  it('stop when the owner switches them off', async () => {
    await autoTopUp(...ON);
    assert.deepEqual(await autoTopUp('--off'), { status: 'off', reason: null });
    bodyOf(await charge(14), 201, ChargeReply);
    assert.equal((await balance()).balance, 1);
    assert.equal((await topUps()).length, 1);
  });

  it('show a key only its own account’s, without amounts: every tool server sees the key', async () => {
    await autoTopUp(...ON);
    assert.deepEqual((await balance()).autoTopUp, { status: 'on', reason: null });
    const stranger = await createAccount(stack.env, 1);
    assert.deepEqual((await balance(stranger)).autoTopUp, { status: 'off', reason: null });
  });

  it('are set completely or not at all, and only to valid values', async () => {
    await autoTopUp(...ON);
    const before = await autoTopUp();
    for (const [said, ...args] of [
      [/Set --threshold, --amount and --ceiling together/, '--threshold', '10'],
      [/cannot be combined/, '--off', ...ON],
      [/exceeds the monthly ceiling/, '--threshold', '10', '--amount', '20', '--ceiling', '19.99'],
      [/whole cents/, '--threshold', '10', '--amount', '0.49', '--ceiling', '50'],
      [/whole cents/, '--threshold', '10', '--amount', '5.001', '--ceiling', '50'],
      [/more than \$0/, '--threshold', '0', '--amount', '20', '--ceiling', '50'],
      [/to \$999,999\.99/, '--threshold', '1000000', '--amount', '20', '--ceiling', '50'],
      [/to \$999,999\.99/, '--threshold', '10', '--amount', '20', '--ceiling', '1000000'],
      [/at most six decimals/, '--threshold', '-1', '--amount', '20', '--ceiling', '50'],
    ] as const) {
      await assert.rejects(autoTopUp(...args), (error: Error & { stderr?: string }) => {
        assert.match(error.stderr ?? '', said);
        return true;
      });
    }
    assert.deepEqual(await autoTopUp(), before);
  });
});
