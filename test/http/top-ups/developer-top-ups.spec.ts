/** Which top-ups paid for a developer's charges: first in, first out, split where a charge spans two. */
import assert from 'node:assert/strict';
import { wireId } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { DeveloperTopUpsReply } from '../../../src/schemas/top-ups.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';

describe('GET /v1/top-ups', () => {
  let api: TestApi;
  let database: Database;
  let consumer: TestAccount;
  let mine: TestAccount;
  let theirs: TestAccount;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 1, onError: () => {} });
  });
  beforeEach(async () => {
    consumer = await api.createAccount(0);
    [mine, theirs] = [await api.createAccount(0), await api.createAccount(0)];
  });
  after(async () => {
    await database.end();
    await api.stop();
  });

  const get = (who: TestAccount, query = '') =>
    call(api, 'GET', `/v1/top-ups${query}`, { key: who.developerKey });
  const list = async (who: TestAccount, query = '') =>
    bodyOf(await get(who, query), 200, DeveloperTopUpsReply);
  const charged = async (who: TestAccount) =>
    (await list(who)).topUps.map(({ id, charged, charges }) => ({ id, charged, charges }));
  const pay = (developer: TestAccount, amount: number, payer = consumer) =>
    charge(api, { ...payer, developerKey: developer.developerKey }, { amount });

  it('splits charges first in, first out', async () => {
    const [first, second] = [await topUp(1), await topUp(2)];
    await pay(mine, 0.6);
    await pay(theirs, 0.6);
    await pay(mine, 0.3);
    assert.deepEqual(await charged(mine), [
      { id: second, charged: 0.3, charges: 1 },
      { id: first, charged: 0.6, charges: 1 },
    ]);
    assert.deepEqual(await charged(theirs), [
      { id: second, charged: 0.2, charges: 1 },
      { id: first, charged: 0.4, charges: 1 },
    ]);
  });

  it('counts a charge that spans three top-ups in each of them', async () => {
    const ids = [await topUp(0.1), await topUp(0.2), await topUp(1)];
    await pay(mine, 0.5);
    await pay(mine, 0.000001);
    assert.deepEqual(await charged(mine), [
      { id: ids[2], charged: 0.200001, charges: 2 },
      { id: ids[1], charged: 0.2, charges: 1 },
      { id: ids[0], charged: 0.1, charges: 1 },
    ]);
  });

  it('ends one top-up exactly where the next one starts', async () => {
    const [first, second] = [await topUp(0.5), await topUp(0.5)];
    await pay(mine, 0.5);
    assert.deepEqual(await charged(mine), [{ id: first, charged: 0.5, charges: 1 }]);
    await pay(mine, 0.000001);
    assert.deepEqual(await charged(mine), [
      { id: second, charged: 0.000001, charges: 1 },
      { id: first, charged: 0.5, charges: 1 },
    ]);
  });

  it('shows the consumer, the whole amount, the status and the time of a top-up', async () => {
    const id = await topUp(3);
    await pay(mine, 1);
    const { topUps, hasMore, nextCursor } = await list(mine);
    const [{ createdAt, ...rest }] = topUps as [(typeof topUps)[number]];
    assert.ok(Math.abs(Date.now() - Date.parse(createdAt)) < 60_000);
    assert.deepEqual(rest, {
      id,
      consumerId: consumer.consumerId,
      amount: 3,
      status: 'completed',
      charged: 1,
      charges: 1,
    });
    assert.deepEqual([hasMore, nextCursor], [false, null]);
  });

  it('omits top-ups that paid for none of the caller’s tools', async () => {
    await topUp(1);
    await topUp(1);
    await pay(theirs, 0.5);
    await pay(theirs, 100);
    assert.deepEqual(await charged(mine), []);
    assert.equal((await charged(theirs)).length, 1);
  });

  it('adds up to the developer’s earnings, over all consumers', async () => {
    const other = await api.createAccount(10);
    await topUp(2);
    for (const amount of [0.1, 0.7, 0.000003]) {
      await pay(mine, amount);
      await pay(mine, amount, other);
    }
    const total = (await charged(mine)).reduce((sum, each) => sum + each.charged * 1e6, 0);
    assert.equal(Math.round(total), 2 * 800_003);
  });

  it('shows every top-up once across its pages, newest first', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      ids.unshift(await topUp(0.5));
      await pay(mine, 0.5);
    }
    const first = await list(mine, '?limit=2');
    const second = await list(mine, `?limit=2&cursor=${first.nextCursor}`);
    const third = await list(mine, `?limit=2&cursor=${second.nextCursor}`);
    assert.deepEqual(
      [first, second, third].flatMap(({ topUps }) => topUps.map(({ id }) => id)),
      ids,
    );
    assert.deepEqual([first.hasMore, second.hasMore, third.hasMore], [true, true, false]);
  });

  it('refuses an invalid limit, and a cursor of another list', async () => {
    assertError(await get(mine, '?limit=0'), 400, 'invalid_request', 'limit');
    const cursor = `chg_${'0'.repeat(32)}`;
    assertError(await get(mine, `?cursor=${cursor}`), 400, 'invalid_cursor', 'cursor');
  });

  /** Credits the consumer by hand: a lot like any other. Returns the top-up's id. */
  async function topUp(dollars: number): Promise<string> {
    const { rows } = await api.sql.query<{ ledger: number; accountId: string; consumerId: string }>(
      `select ledger, id as "accountId", consumer_id as "consumerId"
       from farebox.accounts where email = $1`,
      [consumer.email],
    );
    const who = rows[0] ?? assert.fail();
    const amountMicros = asMicros(Math.round(dollars * 1e6));
    const [id] = await database.transaction((tx) => creditManually(tx, [{ ...who, amountMicros }]));
    return wireId('topUp', id ?? '');
  }
});
