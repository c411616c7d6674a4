/** Tools: registered once under their name, priced or not, and listed with what they earned. */
import assert from 'node:assert/strict';
import { ToolAnswer, ToolsAnswer } from '../../src/schemas/developers.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';

describe('/v1/tools', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(100);
  });
  after(() => api.stop());

  const post = (body: unknown) =>
    call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
  const register = async (body: unknown) => bodyOf(await post(body), 201, ToolAnswer);
  const list = async ({ developerKey } = account) =>
    bodyOf(await call(api, 'GET', '/v1/tools', { key: developerKey }), 200, ToolsAnswer).tools;

  it('registers a tool and answers with what it is', async () => {
    const { id, createdAt, ...rest } = await register({
      name: 'search',
      description: 'Looks for otters',
      price: 0.02,
    });
    assert.match(id, /^tool_[0-9a-f]{32}$/);
    assert.ok(Math.abs(Date.now() - Date.parse(createdAt)) < 60_000);
    assert.deepEqual(rest, { name: 'search', description: 'Looks for otters', price: 0.02 });
  });

  it('needs neither a description nor a price', async () => {
    const { description, price } = await register({ name: 'bare' });
    assert.deepEqual([description, price], ['', null]);
    assert.equal((await register({ name: 'unpriced', price: null })).price, null);
  });

  it('refuses a name that is registered, and leaves that tool as it was', async () => {
    await register({ name: 'search', description: 'first', price: 1 });
    const before = await list();
    const again = { name: 'search', description: 'second', price: 2 };
    assertError(await api.changingNothing(() => post(again)), 409, 'tool_exists');
    assert.deepEqual(await list(), before);
  });

  it('registers a name once, however many ask at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => post({ name: 'raced', price: n + 1 })),
    );
    const [winner, ...more] = answers.filter(({ status }) => status === 201);
    assert.deepEqual([more.length, answers.filter(({ status }) => status === 409).length], [0, 7]);
    assert.ok(winner);
    assert.equal((await list())[0]?.price, bodyOf(winner, 201, ToolAnswer).price);
  });

  it('keeps the id of a name that was charged before it was registered', async () => {
    await charge(api, account, { tool: 'eager', amount: 0.5 });
    const [noted] = await list();
    assert.deepEqual(noted, {
      id: noted?.id,
      name: 'eager',
      description: '',
      price: null,
      totalCharges: 1,
      totalRevenue: 0.5,
    });
    assert.equal((await register({ name: 'eager', price: 1 })).id, noted.id);
    assertError(await post({ name: 'eager' }), 409, 'tool_exists');
  });

  it('lists each tool with its charges and revenue, in the order in which they came', async () => {
    await register({ name: 'a', price: 0.1 });
    await register({ name: 'b', price: 0.000001 });
    for (const tool of ['b', 'a', 'b', 'b'])
      await charge(api, account, { tool, amount: undefined });
    await charge(api, account, { tool: 'a', amount: 1_000 });
    assert.deepEqual(
      (await list()).map(({ name, totalCharges, totalRevenue }) => [
        name,
        totalCharges,
        totalRevenue,
      ]),
      [
        ['a', 1, 0.1],
        ['b', 3, 0.000003],
      ],
    );
  });

  it('lists nothing of another developer, though the names are the same', async () => {
    const other = await api.createAccount(1);
    await register({ name: 'search', price: 1 });
    await charge(api, account);
    assert.deepEqual(await list(other), []);
    const answer = await call(api, 'POST', '/v1/tools', {
      key: other.developerKey,
      body: { name: 'search', price: 2 },
    });
    bodyOf(answer, 201, ToolAnswer);
    assert.deepEqual(
      (await list(other)).map(({ price, totalCharges }) => [price, totalCharges]),
      [[2, 0]],
    );
  });

  for (const name of ['__proto__', 'constructor', '🦦', 'n'.repeat(100), '🦦'.repeat(100)]) {
    it(`takes the name ${name.slice(0, 20)}`, async () => {
      assert.equal((await register({ name, price: 1 })).name, name);
      assert.equal((await list())[0]?.name, name);
    });
  }

  for (const price of [0.000001, 1_000_000]) {
    it(`takes the price ${price}`, async () => {
      assert.equal((await register({ name: 'priced', price })).price, price);
    });
  }

  for (const price of [0, -1, 1e-7, 1_000_000.000001, 1e300, '1', '', true, [], {}]) {
    it(`refuses the price ${JSON.stringify(price)}`, async () => {
      const answer = await api.changingNothing(() => post({ name: 'priced', price }));
      assertError(answer, 400, 'invalid_amount', 'price');
    });
  }

  for (const name of [undefined, null, 1, [], '', '  ', 'n'.repeat(101), 'a\nb', 'a\0', '\ud800']) {
    it(`refuses the name ${JSON.stringify(name)?.slice(0, 20) ?? 'left out'}`, async () => {
      const answer = await api.changingNothing(() => post({ name, price: 1 }));
      assertError(answer, 400, 'invalid_request', 'name');
    });
  }

  for (const description of [null, 1, {}, 'd'.repeat(2_001), 'a\0', '\ud800']) {
    it(`refuses the description ${JSON.stringify(description).slice(0, 20)}`, async () => {
      const answer = await api.changingNothing(() => post({ name: 'described', description }));
      assertError(answer, 400, 'invalid_request', 'description');
    });
  }
});
