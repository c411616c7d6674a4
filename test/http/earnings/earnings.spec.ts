/** A developer's earnings: in total, today, and by tool, exact to the micro-dollar at every moment. */
import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { uuidFloor } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import { postCharges } from '../../../src/store/charges/post-charges.ts';
import { createDatabase } from '../../../src/store/database.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { untilDayIsYoung } from '../../support/until-hour-is-young.ts';

describe('GET /v1/earnings', () => {
  let api: TestApi;
  let developer: TestAccount;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(untilDayIsYoung);
  beforeEach(async () => {
    developer = await api.createAccount(100);
  });
  after(() => api.stop());

  const earnings = async ({ developerKey } = developer) =>
    bodyOf(await call(api, 'GET', '/v1/earnings', { key: developerKey }), 200, EarningsReply);

  it('are zero before the first charge', async () => {
    assert.deepEqual(await earnings(), {
      developerId: developer.developerId,
      totalEarnings: 0,
      todayEarnings: 0,
      byTool: {},
    });
  });

  it('add up charges of all consumers by tool, without refusals', async () => {
    const other = { ...(await api.createAccount(1)), developerKey: developer.developerKey };
    await charge(api, developer, { tool: 'search', amount: 0.1 });
    await charge(api, developer, { tool: 'search', amount: 0.2 });
    await charge(api, other, { tool: 'read', amount: 0.000001 });
    await charge(api, other, { tool: 'read', amount: 5 });
    const { totalEarnings, byTool } = await earnings();
    assert.equal(totalEarnings, 0.300001);
    assert.deepEqual(byTool, { search: 0.3, read: 0.000001 });
  });

  it('belong to the developer who charged, not to the payer', async () => {
    const consumer = await api.createAccount(1);
    await charge(api, { ...consumer, developerKey: developer.developerKey }, { amount: 1 });
    assert.equal((await earnings(consumer)).totalEarnings, 0);
    assert.equal((await earnings()).totalEarnings, 1);
  });

  it('count a replay once', async () => {
    const headers = { 'idempotency-key': 'once' };
    for (let n = 0; n < 3; n += 1) await charge(api, developer, { amount: 1 }, headers);
    assert.equal((await earnings()).totalEarnings, 1);
  });

  it('of today start at midnight UTC', async () => {
    const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    await chargeAt(midnight, 1);
    await chargeAt(midnight - 1, 10);
    await chargeAt(midnight - 40 * DAY_MS, 50);
    const { totalEarnings, todayEarnings, byTool } = await earnings();
    assert.deepEqual([totalEarnings, todayEarnings, byTool], [61, 1, { backdated: 61 }]);
  });

  it('fall by a refund on the day of the refund, if need be below zero', async () => {
    const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    await chargeAt(midnight - 1, 10);
    const id = `chg_${uuidFloor(midnight - 1).replaceAll('-', '')}`;
    const { developerKey: key } = developer;
    const refunded = await call(api, 'POST', `/v1/charges/${id}/refund`, {
      key,
      body: { amount: 4 },
    });
    assert.equal(refunded.status, 201);
    const { totalEarnings, todayEarnings, byTool } = await earnings();
    assert.deepEqual([totalEarnings, todayEarnings, byTool], [6, -4, { backdated: 6 }]);
  });

  it('name every tool, with any name', async () => {
    const names = ['__proto__', 'constructor', 'toString', '1', '🦦', 'a "quoted" name'];
    for (const tool of names) await charge(api, developer, { tool, amount: 0.5 });
    const { byTool, totalEarnings } = await earnings();
    assert.deepEqual(Object.keys(byTool).toSorted(), names.toSorted());
    for (const name of names) {
      assert.equal(Object.getOwnPropertyDescriptor(byTool, name)?.value, 0.5, name);
    }
    assert.equal(totalEarnings, 3);
  });

  /** A charge of the developer to itself, made in the store with an id of that time. */
  async function chargeAt(timeMs: number, dollars: number): Promise<void> {
    const consumerId = developer.consumerId.slice('cns_'.length);
    const { rows } = await api.sql.query<{ ledger: number; id: string; number: number }>(
      `select ledger, consumer_id as id, developer_number as number from farebox.accounts
       where consumer_id = $1`,
      [consumerId],
    );
    const { ledger, id, number } = rows[0] ?? assert.fail();
    const database = await createDatabase(api.databaseUrl, { maxPoolSize: 1, onError: () => {} });
    const draft = {
      id: uuidFloor(timeMs),
      ledger,
      consumerId: id,
      developerId: developer.developerId.slice('dev_'.length),
      developerNumber: number,
      tool: 'backdated',
      amountMicros: asMicros(dollars * 1e6),
      idempotencyHash: null,
      fingerprint: null,
      metadata: null,
      spend: null,
    };
    const now = Date.now();
    const replay = { fromId: uuidFloor(now), toId: uuidFloor(now) };
    const [outcome] = await postCharges(database, [draft], 1, replay);
    await database.end();
    assert.equal(outcome?.kind, 'posted');
  }
});
