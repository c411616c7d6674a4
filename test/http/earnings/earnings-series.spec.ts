/** A developer's earnings by UTC hours and days, rolled up or not. */
import assert from 'node:assert/strict';
import { DAY_MS, HOUR_MS } from '../../../src/domain/durations.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

const TUESDAY = Date.UTC(2026, 2, 10);

describe('GET /v1/earnings, in time', () => {
  let api: TestApi;
  let harness: EarningsHarness;
  let developer: Party;

  before(async () => {
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
    const parties = await harness.parties(2);
    developer = parties[0] as Party;
    const consumer = parties[1] as Party;
    await harness.topUp(consumer, 100_000_000);
    const at = (timeMs: number, dollars: number, tool: string) => ({
      consumer,
      developer,
      timeMs,
      amount: dollars * 1e6,
      tool,
    });
    await harness.charge([
      at(TUESDAY - 1, 1, 'search'),
      at(TUESDAY, 2, 'search'),
      at(TUESDAY + HOUR_MS - 1, 3, '__proto__'),
      at(TUESDAY + HOUR_MS, 4, 'search'),
      at(TUESDAY + DAY_MS - 1, 5, 'search'),
      at(TUESDAY + DAY_MS, 6, 'fetch'),
      at(TUESDAY + 3 * DAY_MS + HOUR_MS, 7, 'fetch'),
    ]);
  });
  after(async () => {
    await harness.close();
    await api.stop();
  });

  const get = (query: string) =>
    call(api, 'GET', `/v1/earnings?${query}`, { key: developer.developerKey });
  const earnings = async (query: string) => bodyOf(await get(query), 200, EarningsReply);
  const series = async (query: string) =>
    (await earnings(query)).series?.map((each) => [each.earnings, each.charges]);
  const total = async (query: string) => (await earnings(query)).totalEarnings;

  // Before and after everything is rolled up: the result is the same.
  for (const state of ['while all of it is in the tail', 'once it is rolled up']) {
    describe(state, () => {
      before(async () => {
        if (state === 'once it is rolled up') await rollUp(harness.database);
      });

      it('starts at `from` and ends before `to`', async () => {
        assert.equal(await total('from=2026-03-10'), 27);
        assert.equal(await total('to=2026-03-10'), 1);
        assert.equal(await total('from=2026-03-10&to=2026-03-11'), 14);
        assert.equal(await total('from=2026-03-09T23:00Z&to=2026-03-10T01:00Z'), 6);
        assert.equal(await total('from=2026-03-09T23:00Z&to=2026-03-13T02:00Z'), 28);
        assert.equal(await total('from=2026-03-10T01:00Z&to=2026-03-11T01:00Z'), 15);
        assert.equal(await total('from=2026-03-10T02:00%2B01:00&to=2026-03-10T02:00Z'), 4);
        assert.equal(await total('from=2026-03-14'), 0);
      });

      it('includes the tools with earnings in that time, and today’s earnings of all tools', async () => {
        const { byTool, todayEarnings } = await earnings('from=2026-03-10&to=2026-03-10T01:00Z');
        assert.deepEqual(
          new Map(Object.entries(byTool)),
          new Map([
            ['__proto__', 3],
            ['search', 2],
          ]),
        );
        assert.equal(todayEarnings, 0);
      });

      it('is returned by day, including days without earnings', async () => {
        const { series, totalEarnings } = await earnings(
          'interval=day&from=2026-03-09&to=2026-03-14',
        );
        assert.deepEqual(
          series?.map(({ from, earnings: micros, charges }) => [from, micros, charges]),
          [
            ['2026-03-09T00:00:00.000Z', 1, 1],
            ['2026-03-10T00:00:00.000Z', 14, 4],
            ['2026-03-11T00:00:00.000Z', 6, 1],
            ['2026-03-12T00:00:00.000Z', 0, 0],
            ['2026-03-13T00:00:00.000Z', 7, 1],
          ],
        );
        assert.equal(totalEarnings, 28);
      });

      it('is of one tool when it is asked for', async () => {
        const days = 'interval=day&from=2026-03-10&to=2026-03-12';
        const { byTool, totalEarnings } = await earnings(`${days}&tool=search`);
        assert.deepEqual([{ ...byTool }, totalEarnings], [{ search: 11 }, 11]);
        assert.deepEqual(await series(`${days}&tool=search`), [
          [11, 3],
          [0, 0],
        ]);
        assert.equal(await total('from=2026-03-10T00:00Z&to=2026-03-10T01:00Z&tool=search'), 2);
        assert.equal(await total('tool=fetch'), 13);
        assert.deepEqual({ ...(await earnings('tool=none')).byTool }, {});
      });

      it('is returned by hour', async () => {
        const { series } = await earnings(
          'interval=hour&from=2026-03-09T23:00Z&to=2026-03-10T03:00Z',
        );
        assert.deepEqual(
          series?.map(({ earnings: micros, charges }) => [micros, charges]),
          [
            [1, 1],
            [5, 2],
            [4, 1],
            [0, 0],
          ],
        );
      });
    });
  }

  it('ends with the current interval when `to` is missing', async () => {
    const from = new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS).toISOString();
    const { series } = await earnings(`interval=hour&from=${from}`);
    assert.ok(series?.length === 3 || series?.length === 4); // 4: the hour has just ended
    assert.equal(series[0]?.from, from);
  });

  it('is refused for intervals without sums and for invalid ones', async () => {
    const bad: readonly (readonly [query: string, param: string])[] = [
      ['from=2026-03-10T00:30Z', 'from'],
      ['to=2026-03-10T00:00:00.001Z', 'to'],
      ['from=yesterday', 'from'],
      ['to=2026-02-30', 'to'],
      ['from=2026-03-10&to=2026-03-10', 'from'],
      ['from=2026-03-11&to=2026-03-10', 'from'],
      ['interval=minute&from=2026-03-10', 'interval'],
      ['interval=', 'interval'],
      ['interval=hour&interval=day&from=2026-03-10', 'interval'],
      ['interval=hour', 'from'],
      ['interval=day&from=2026-03-10T01:00Z', 'from'],
      ['interval=day&from=2026-03-09&to=2026-03-10T01:00Z', 'to'],
      ['interval=hour&from=2026-01-01&to=2026-03-10', 'from'],
    ];
    for (const [query, param] of bad) {
      assertError(await get(query), 400, 'invalid_request', param);
    }
  });

  it('is hidden from other developers and from consumers', async () => {
    const [stranger] = await harness.parties(1);
    const query = '/v1/earnings?interval=day&from=2026-03-09&to=2026-03-14';
    const answer = await call(api, 'GET', query, { key: (stranger as Party).developerKey });
    const { totalEarnings, series } = bodyOf(answer, 200, EarningsReply);
    assert.equal(totalEarnings, 0);
    assert.ok(series?.every(({ charges }) => charges === 0));
    const refused = await call(api, 'GET', query, { key: developer.consumerKey });
    assertError(refused, 401, 'invalid_secret_key');
  });
});
