/** A consumer's spending by UTC day: charges of the day less the refunds made on it. */
import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { UsageByDayReply } from '../../../src/schemas/balance.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { untilDayIsYoung } from '../../support/until-hour-is-young.ts';

describe('GET /v1/usage/daily', () => {
  /** When the UTC day began. */
  let today: number;
  let api: TestApi;
  let harness: EarningsHarness;
  let developer: Party;
  let consumer: Party;

  before(untilDayIsYoung);
  before(async () => {
    today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
    [developer, consumer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 100_000_000);
    const at = (timeMs: number, dollars: number) => ({
      consumer,
      developer,
      timeMs,
      amount: dollars * 1e6,
    });
    await harness.charge([
      at(today - 3 * DAY_MS - 1, 1),
      at(today - 3 * DAY_MS, 2),
      at(today - 2 * DAY_MS - 1, 4),
      at(today - DAY_MS, 8),
      at(today, 16),
    ]);
  });
  after(async () => {
    await harness?.close();
    await api?.stop();
  });

  const dayOf = (daysAgo: number) => new Date(today - daysAgo * DAY_MS).toISOString();
  const get = (query: string, key = consumer.consumerKey) =>
    call(api, 'GET', `/v1/usage/daily${query}`, { key });

  it('has each day from the first to today, with what was spent before midnight and no more', async () => {
    const { days } = bodyOf(await get(`?from=${dayOf(3)}`), 200, UsageByDayReply);
    assert.deepEqual(
      days.map(({ from, spent }) => [from, spent]),
      [
        [dayOf(3), 6],
        [dayOf(2), 0],
        [dayOf(1), 8],
        [dayOf(0), 16],
      ],
    );
  });

  it('counts a refund on the day on which it was made, not on that of the charge', async () => {
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.charges where amount_micros = 8000000',
    );
    const id = `chg_${(rows[0]?.id ?? '').replaceAll('-', '')}`;
    const key = developer.developerKey;
    await call(api, 'POST', `/v1/charges/${id}/refund`, { key, body: {} });
    const { days } = bodyOf(await get(`?from=${dayOf(1)}`), 200, UsageByDayReply);
    assert.deepEqual(
      days.map(({ spent }) => spent),
      [8, 8],
    );
  });

  it('is empty when the first day is in the future', async () => {
    assert.deepEqual(bodyOf(await get(`?from=${dayOf(-2)}`), 200, UsageByDayReply).days, []);
  });

  it('is refused without a first day, for a part of a day, and for more than a hundred days', async () => {
    for (const query of ['', `?from=${dayOf(1).replace('T00', 'T01')}`, `?from=${dayOf(100)}`]) {
      assertError(await get(query), 400, 'invalid_request', 'from');
    }
    const { days } = bodyOf(await get(`?from=${dayOf(99)}`), 200, UsageByDayReply);
    assert.equal(days.length, 100);
  });
});
