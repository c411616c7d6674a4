/** Successful charges: the receipt, the amount, the price, and the possible tools and metadata. */
import assert from 'node:assert/strict';
import { ChargeReply, DeveloperChargeReply } from '../../../src/schemas/charges.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { VerifyReply } from '../../../src/schemas/receipts.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { bodyOf, call, charge } from '../../support/http.ts';

describe('POST /v1/charges: 201', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10_000_000);
  });
  after(() => api.stop());

  const made = async (
    ...args: Parameters<typeof charge> extends [unknown, ...infer Rest] ? Rest : never
  ) => bodyOf(await charge(api, ...args), 201, ChargeReply);

  async function balanceOf({ consumerKey }: TestAccount): Promise<number> {
    const answer = await call(api, 'GET', '/v1/balance', { key: consumerKey });
    return bodyOf(answer, 200, BalanceReply).balance;
  }

  it('charges the consumer and returns the exact charge', async () => {
    const [consumer, developer] = [await api.createAccount(1), await api.createAccount(0)];
    const answer = await call(api, 'POST', '/v1/charges', {
      key: developer.developerKey,
      body: { apiKey: consumer.consumerKey, tool: 'search', amount: 0.1 },
    });
    const { id, receipt, createdAt, ...rest } = bodyOf(answer, 201, ChargeReply);
    assert.match(id, /^chg_[0-9a-f]{32}$/);
    assert.match(receipt, /^hmac_sha256\.1\.[\w-]+\.[\w-]{43}$/);
    assert.ok(Math.abs(Date.now() - Date.parse(createdAt)) < 60_000);
    assert.deepEqual(rest, {
      tool: 'search',
      amount: 0.1,
      consumerId: consumer.consumerId,
      developerId: developer.developerId,
      balance: 0.9,
    });
    assert.equal(await balanceOf(consumer), 0.9);
    assert.equal(answer.headers.get('idempotency-replayed'), null);
  });

  it('accepts the amount as a decimal string, alone and in a batch, to the last micro-dollar', async () => {
    const before = await balanceOf(account);
    const amounts = ['0.21', '0.210', '1', '0.000001', '1000000', '1000000.000000', '00.5'];
    for (const amount of amounts) {
      assert.equal((await made(account, { amount })).amount, Number(amount));
    }
    const { body } = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body: {
        charges: amounts.map((amount) => ({ apiKey: account.consumerKey, tool: 'search', amount })),
      },
    });
    const { results } = body as { results: { status: number; amount: number }[] };
    assert.deepEqual(
      results.map(({ status, amount }) => ({ status, amount })),
      amounts.map((amount) => ({ status: 201, amount: Number(amount) })),
    );
    const spent = Math.round((before - (await balanceOf(account))) * 1e6);
    assert.equal(spent, 2 * (210_000 + 210_000 + 1_000_000 + 1 + 2e12 + 500_000));
  });

  it('returns a receipt that both consumer and developer can verify', async () => {
    const { receipt, id, tool, amount, consumerId, developerId, createdAt } = await made(account);
    for (const key of [account.consumerKey, account.developerKey]) {
      const answer = await call(api, 'POST', '/v1/receipts/verify', { key, body: { receipt } });
      assert.deepEqual(bodyOf(answer, 200, VerifyReply), {
        valid: true,
        recorded: true,
        keyId: '1',
        charge: { id, consumerId, developerId, tool, amount, createdAt, livemode: true },
      });
    }
  });

  it('takes a balance down to exactly $0.00', async () => {
    const consumer = await api.createAccount(0.3);
    assert.equal((await made(consumer, { amount: 0.1 })).balance, 0.2);
    assert.equal((await made(consumer, { amount: 0.2 })).balance, 0);
    assert.equal(await balanceOf(consumer), 0);
  });

  for (const amount of [0.000001, 0.000003, 0.1, 0.29, 1.005, 999_999.999999, 1_000_000]) {
    it(`charges $${amount} to the micro-dollar`, async () => {
      const consumer = await api.createAccount(1_000_001);
      const { balance, ...answer } = await made(consumer, { amount });
      assert.equal(answer.amount, amount);
      assert.equal(Math.round(balance * 1e6), 1_000_001_000_000 - Math.round(amount * 1e6));
    });
  }

  it('charges the registered price when no amount is sent, and a sent amount instead of it', async () => {
    const body = { name: 'priced', description: 'a tool', price: 0.25 };
    await call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
    assert.equal((await made(account, { tool: 'priced', amount: undefined })).amount, 0.25);
    assert.equal((await made(account, { tool: 'priced', amount: 0.5 })).amount, 0.5);
  });

  it('uses a price as soon as its registration was answered', async () => {
    await made(account, { tool: 'priced later' });
    const body = { name: 'priced later', price: 0.75 };
    await call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
    assert.equal((await made(account, { tool: 'priced later', amount: undefined })).amount, 0.75);
  });

  const names = [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'x',
    'search/web v2.1 (beta)',
    ' leading and trailing ',
    "Robert'); drop table charges;--",
    '{a,"b"}',
    'поиск',
    '🦦',
    '👩‍👩‍👧 family',
    '🦦'.repeat(100),
    'n'.repeat(100),
  ];
  for (const tool of names) {
    it(`accepts a tool named ${JSON.stringify(tool.slice(0, 40))}`, async () => {
      const { id } = await made(account, { tool });
      const answer = await call(api, 'GET', `/v1/charges/${id}`, { key: account.developerKey });
      assert.equal(bodyOf(answer, 200, DeveloperChargeReply).tool, tool);
    });
  }

  const metadata = [
    {},
    { query: 'otters', page: 2, cached: false, user: null },
    JSON.parse('{"__proto__": "mine", "constructor": 1}') as object,
    { ['k'.repeat(40)]: 'v'.repeat(500) },
    { ['🦦'.repeat(40)]: '🦦'.repeat(500), 'quote"\\': "'; --\n\t" },
    { tiny: 5e-324, huge: 1.7976931348623157e308, negative: -1.5, zero: 0 },
    Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`member ${n}`, n])),
  ];
  for (const each of metadata) {
    it(`keeps metadata unchanged: ${JSON.stringify(each).slice(0, 60)}`, async () => {
      const { id } = await made(account, { metadata: each });
      const answer = await call(api, 'GET', `/v1/charges/${id}`, { key: account.developerKey });
      assert.deepEqual(bodyOf(answer, 200, DeveloperChargeReply).metadata, each);
    });
  }

  it('takes the last of two members with one name, and states what it took', async () => {
    const { consumerKey: apiKey, developerKey: key } = account;
    const rawBody = `{"apiKey":"${apiKey}","tool":"search","amount":1,"amount":0.25}`;
    const answer = await call(api, 'POST', '/v1/charges', { key, rawBody });
    assert.equal(bodyOf(answer, 201, ChargeReply).amount, 0.25);
  });

  it('ignores unknown members, at any depth', async () => {
    const deep = '['.repeat(30_000) + ']'.repeat(30_000);
    const { consumerKey: apiKey, developerKey: key } = account;
    const rawBody = `{"apiKey":"${apiKey}","tool":"search","amount":1,"extra":${deep},"__proto__":{"amount":5}}`;
    const answer = await call(api, 'POST', '/v1/charges', { key, rawBody });
    assert.equal(bodyOf(answer, 201, ChargeReply).amount, 1);
  });

  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset=UTF-8',
  ]) {
    it(`accepts a body of type ${type}`, async () => {
      const answer = await charge(api, account, {}, { 'content-type': type });
      bodyOf(answer, 201, ChargeReply);
    });
  }

  for (const scheme of ['Bearer ', 'bearer ', 'BEARER  ']) {
    it(`accepts a key after ${JSON.stringify(scheme)}`, async () => {
      const headers = { authorization: scheme + account.developerKey };
      bodyOf(await charge(api, account, {}, headers), 201, ChargeReply);
    });
  }
});
