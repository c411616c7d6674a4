/** What consumers read about themselves: the balance, and the filtered charges with their total. */
import assert from 'node:assert/strict';
import { createDatabase } from '../../../src/store/database.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { setAutoTopUp } from '../../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { recordReversals } from '../../../src/store/top-ups/reversals.ts';
import { ChargeReply, ConsumerChargeReply } from '../../../src/schemas/charges.ts';
import { BalanceReply, UsageReply } from '../../../src/schemas/balance.ts';
import { dispute } from '../../support/payer.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { testSideOf } from '../../support/test-mode.ts';

describe('GET /v1/balance', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const balanceOf = async (account: TestAccount) =>
    bodyOf(await call(api, 'GET', '/v1/balance', { key: account.consumerKey }), 200, BalanceReply);

  it('shows the money that can be spent, and whose it is', async () => {
    const account = await api.createAccount(12.345678);
    const { consumerId } = account;
    const autoTopUp = { status: 'off', reason: null };
    const rest = { debt: 0, held: 0, consumerId, autoTopUp };
    assert.deepEqual(await balanceOf(account), { balance: 12.345678, ...rest });
    await charge(api, account, { amount: 0.345678 });
    assert.deepEqual(await balanceOf(account), { balance: 12, ...rest });
  });

  it('shows zeros for a new account', async () => {
    assert.equal((await balanceOf(await api.createAccount(0))).balance, 0);
  });

  it('excludes held money, and shows it', async () => {
    const account = await api.createAccount(5);
    await api.sql.query('update farebox.consumers set held_micros = 2000000 where id = $1', [
      account.consumerId.slice('cns_'.length),
    ]);
    const { balance, held } = await balanceOf(account);
    assert.deepEqual({ balance, held }, { balance: 3, held: 2 });
  });

  it('shows spent money that refunds and disputes took as debt, and that no top-up is automatic after a dispute', async () => {
    const account = await api.createAccount(5);
    await charge(api, account, { amount: 4.5 });
    const database = await createDatabase(api.databaseUrl, {
      maxPoolSize: 1,
      onError: () => {},
    });
    const { rows } = await api.sql.query<{ id: string; ledger: number; consumerId: string }>(
      'select id, ledger, consumer_id as "consumerId" from farebox.top_ups where consumer_id = $1',
      [account.consumerId.slice('cns_'.length)],
    );
    const [topUp] = rows;
    assert.ok(topUp);
    const five = asMicros(5_000_000);
    await changeConsent(database, topUp.consumerId, { ceilingMicros: five, givenBy: 'operator' });
    const settings = { thresholdMicros: five, amountMicros: five, ceilingMicros: five };
    assert.equal(await setAutoTopUp(database, topUp, settings), 'set');
    assert.deepEqual((await balanceOf(account)).autoTopUp, { status: 'on', reason: null });
    await recordReversals(database, topUp.id, 0, [dispute('dp_1', five, 'lost')]);
    await database.end();
    const { balance, debt, autoTopUp } = await balanceOf(account);
    assert.deepEqual({ balance, debt }, { balance: 0, debt: 4.5 });
    assert.deepEqual(autoTopUp, { status: 'off', reason: 'payment_disputed' });
  });

  it('is correct to the micro-dollar after each charge', async () => {
    const account = await api.createAccount(1);
    let micros = 1_000_000;
    for (const amount of [0.1, 0.2, 0.000001, 0.070007]) {
      await charge(api, account, { amount });
      micros -= Math.round(amount * 1e6);
      assert.equal((await balanceOf(account)).balance, micros / 1e6);
    }
  });
});

describe('GET /v1/usage', () => {
  let api: TestApi;
  let account: TestAccount;
  const ids: string[] = [];

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
    const developers = [account, await api.createAccount(0)];
    for (let n = 0; n < 6; n += 1) {
      const { developerKey } = developers[n % 2] ?? account;
      const answer = await charge(
        api,
        { ...account, developerKey },
        { amount: 0.1, tool: n < 4 ? 'search' : 'read', metadata: { secret: 'of the developer' } },
      );
      ids.unshift(bodyOf(answer, 201, ChargeReply).id);
    }
    await charge(api, account, { amount: 100 });
  });
  after(() => api.stop());

  const get = (query: string) =>
    call(api, 'GET', `/v1/usage${query}`, { key: account.consumerKey });
  const usage = async (query = '') => bodyOf(await get(query), 200, UsageReply);

  it('lists the charges of all developers, newest first, with their total', async () => {
    const { charges, total, hasMore } = await usage();
    assert.deepEqual(
      charges.map(({ id }) => id),
      ids,
    );
    assert.deepEqual([total, hasMore], [0.6, false]);
    assert.deepEqual(Object.keys(charges[0] ?? {}).toSorted(), [
      'amount',
      'createdAt',
      'developerId',
      'id',
      'receipt',
      'refunded',
      'tool',
    ]);
  });

  it('adds up all matching charges, not only the page', async () => {
    const first = await usage('?limit=2');
    assert.deepEqual([first.total, first.charges.length, first.hasMore], [0.6, 2, true]);
    const second = await usage(`?limit=2&cursor=${first.nextCursor}`);
    assert.equal(second.total, 0.6);
    assert.deepEqual(
      second.charges.map(({ id }) => id),
      ids.slice(2, 4),
    );
    assert.deepEqual((await usage('?tool=search&limit=1')).total, 0.4);
    assert.deepEqual((await usage('?tool=read')).charges.length, 2);
  });

  it('is empty, with a total of $0.00, when nothing matches', async () => {
    const empty = { charges: [], total: 0, hasMore: false, nextCursor: null };
    assert.deepEqual(await usage('?tool=none'), empty);
    assert.deepEqual(await usage('?from=9999-01-01'), empty);
    assert.deepEqual(await usage('?to=2020-01-01'), empty);
  });

  for (const [query, param] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['from=never', 'from'],
    ['to=2026-02-31', 'to'],
  ] as const) {
    it(`refuses ?${query}`, async () => {
      assertError(await get(`?${query}`), 400, 'invalid_request', param);
    });
  }

  it('refuses a cursor of another list', async () => {
    const answer = await get(`?cursor=tu_${'0'.repeat(32)}`);
    assertError(answer, 400, 'invalid_cursor', 'cursor');
  });
});

describe('GET /v1/usage/:id', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const read = (key: string, id: string) => call(api, 'GET', `/v1/usage/${id}`, { key });
  const spend = async (account: TestAccount, amount: number) =>
    bodyOf(await charge(api, account, { amount }), 201, ChargeReply).id;

  it('names the credits that paid for a charge, oldest first, which add up to it', async () => {
    const account = await api.createAccount(2);
    const first = await spend(account, 1.5);
    const refund = await call(api, 'POST', `/v1/charges/${first}/refund`, {
      key: account.developerKey,
      body: { amount: 0.25 },
    });
    assert.equal(refund.status, 201);
    const id = await spend(account, 0.600001);
    const found = bodyOf(await read(account.consumerKey, id), 200, ConsumerChargeReply);
    const credits = found.paidBy.map(({ source, amount }) => [source, amount]);
    assert.deepEqual(credits, [
      ['top_up', 0.5],
      ['charge_refund', 0.100001],
    ]);
    assert.match(found.paidBy[0]?.topUpId ?? '', /^tu_/);
    const own = bodyOf(await read(account.consumerKey, first), 200, ConsumerChargeReply);
    assert.deepEqual([own.refunded, own.paidBy.length], [0.25, 1]);
    assert.equal(own.paidBy[0]?.amount, 1.5);
  });

  it('says the same of a test charge, which play money paid for', async () => {
    const account = await api.createAccount(0);
    const test = await testSideOf(api, api.databaseUrl, account, 20);
    const id = await spend(test, 3);
    const { paidBy } = bodyOf(await read(test.consumerKey, id), 200, ConsumerChargeReply);
    assert.deepEqual(
      paidBy.map(({ source, amount }) => [source, amount]),
      [['top_up', 3]],
    );
    assertError(await read(account.consumerKey, id), 404, 'not_found');
  });

  it('refuses the charge of another consumer, and an id that is none', async () => {
    const account = await api.createAccount(2);
    const id = await spend(account, 1);
    const { consumerKey } = await api.createAccount(2);
    assertError(await read(consumerKey, id), 404, 'not_found');
    assertError(await read(consumerKey, 'chg_1'), 404, 'not_found');
  });
});
