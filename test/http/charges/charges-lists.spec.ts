/** The developer's charges: newest first, page by page, filtered, and each by its id. */
import assert from 'node:assert/strict';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import { ChargeReply, ChargesReply, DeveloperChargeReply } from '../../../src/schemas/charges.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

interface Made {
  readonly id: string;
  readonly createdAt: string;
}

describe('GET /v1/charges', () => {
  let api: TestApi;
  let developer: TestAccount;
  let consumer: TestAccount;
  /** Newest first, each in a different millisecond. */
  const made: Made[] = [];

  before(async () => {
    api = await startTestApi();
    [developer, consumer] = [await api.createAccount(10), await api.createAccount(10)];
    for (let n = 1; n <= 7; n += 1) {
      const payer = n % 2 === 0 ? consumer : developer;
      const answer = await charge(
        api,
        { ...developer, consumerKey: payer.consumerKey },
        { amount: n / 100, tool: n > 5 ? 'late' : 'early', metadata: { n } },
      );
      const { id, createdAt } = bodyOf(answer, 201, ChargeReply);
      made.unshift({ id, createdAt });
      await until(() => Date.now() > Date.parse(createdAt), { intervalMs: 1 });
    }
  });
  after(() => api.stop());

  const get = (query: string, who = developer) =>
    call(api, 'GET', `/v1/charges${query}`, { key: who.developerKey });
  const list = async (query = '') => bodyOf(await get(query), 200, ChargesReply);
  const idsOf = async (query: string) => (await list(query)).charges.map(({ id }) => id);
  const ids = (from: number, to: number) => made.slice(from, to).map(({ id }) => id);

  it('lists charges newest first, with all their fields', async () => {
    const { charges, hasMore, nextCursor } = await list();
    assert.deepEqual(
      charges.map(({ id }) => id),
      ids(0, 7),
    );
    assert.deepEqual([hasMore, nextCursor], [false, null]);
    const { receipt, ...second } = charges[1] ?? assert.fail();
    assert.match(receipt, /^hmac_sha256\./);
    assert.deepEqual(second, {
      ...made[1],
      tool: 'late',
      amount: 0.06,
      refunded: 0,
      developerId: developer.developerId,
      consumerId: consumer.consumerId,
      metadata: { n: 6 },
    });
  });

  it('returns a charge by its id as the list does, with its receipt', async () => {
    const [first] = (await list('?limit=1')).charges;
    const answer = await call(api, 'GET', `/v1/charges/${first?.id}`, {
      key: developer.developerKey,
    });
    assert.deepEqual(bodyOf(answer, 200, DeveloperChargeReply), first);
  });

  it('shows every charge once across its pages', async () => {
    const seen: string[] = [];
    const sizes: number[] = [];
    let query = '?limit=3';
    for (;;) {
      const { charges, hasMore, nextCursor } = await list(query);
      seen.push(...charges.map(({ id }) => id));
      sizes.push(charges.length);
      assert.equal(hasMore, nextCursor !== null);
      if (nextCursor === null) break;
      query = `?limit=3&cursor=${nextCursor}`;
    }
    assert.deepEqual(seen, ids(0, 7));
    assert.deepEqual(sizes, [3, 3, 1]);
  });

  it('does not offer an empty page', async () => {
    assert.equal((await list('?limit=7')).nextCursor, null);
  });

  it('keeps its pages in place while new charges come in', async () => {
    const { nextCursor } = await list('?limit=3');
    const other = await api.createAccount(1);
    bodyOf(
      await charge(api, { ...other, developerKey: developer.developerKey }, { tool: 'meanwhile' }),
      201,
      ChargeReply,
    );
    assert.deepEqual(await idsOf(`?limit=100&cursor=${nextCursor}`), ids(3, 7));
  });

  it('filters by tool and by time: from an instant, to before another', async () => {
    assert.deepEqual(await idsOf('?tool=late'), ids(0, 2));
    assert.deepEqual(await idsOf('?tool=none'), []);
    const [newest, , third, , , , oldest] = made.map(({ createdAt }) => createdAt);
    assert.deepEqual(await idsOf(`?from=${third}&tool=early`), ids(2, 3));
    assert.deepEqual(await idsOf(`?to=${third}`), ids(3, 7));
    assert.deepEqual(await idsOf(`?from=${oldest}&to=${newest}`), ids(1, 7));
    assert.deepEqual(await idsOf(`?from=${third}&to=${third}`), []);
  });

  it('filters by times that are finer than a millisecond', async () => {
    const third = made[2]?.createdAt.slice(0, -1);
    assert.deepEqual(await idsOf(`?from=${third}000Z&tool=early`), ids(2, 3));
    assert.deepEqual(await idsOf(`?from=${third}001Z&tool=early`), []);
    assert.deepEqual(await idsOf(`?to=${third}000%2B00:00`), ids(3, 7));
    assert.deepEqual(await idsOf(`?to=${third}000001Z`), ids(2, 7));
  });

  it('filters by consumer, alone and with tool and time', async () => {
    const third = made[2]?.createdAt;
    const [mine, others] = [developer.consumerId, consumer.consumerId];
    assert.deepEqual(await idsOf(`?consumerId=${others}`), [made[1]?.id, made[3]?.id, made[5]?.id]);
    assert.deepEqual(await idsOf(`?consumerId=${others}&tool=late`), ids(1, 2));
    assert.deepEqual(await idsOf(`?consumerId=${mine}&to=${third}`), [made[4]?.id, made[6]?.id]);
    assert.deepEqual(await idsOf(`?consumerId=cns_${'0'.repeat(32)}`), []);
    const { charges, nextCursor } = await list(`?consumerId=${others}&limit=2`);
    assert.deepEqual(
      charges.map(({ id }) => id),
      [made[1]?.id, made[3]?.id],
    );
    assert.deepEqual(await idsOf(`?consumerId=${others}&limit=2&cursor=${nextCursor}`), ids(5, 6));
  });

  it('hides charges that the consumer paid to other developers', async () => {
    const other = await api.createAccount(1);
    await charge(api, { ...consumer, developerKey: other.developerKey }, { tool: 'elsewhere' });
    const seen = await idsOf(`?consumerId=${consumer.consumerId}`);
    assert.deepEqual(seen, [made[1]?.id, made[3]?.id, made[5]?.id]);
  });

  it('pages through a rare tool, with any charges in between', async () => {
    for (const limit of [1, 2, 4]) {
      const seen: string[] = [];
      let query = `?tool=early&limit=${limit}`;
      for (;;) {
        const { charges, nextCursor } = await list(query);
        seen.push(...charges.map(({ id }) => id));
        if (nextCursor === null) break;
        query = `?tool=early&limit=${limit}&cursor=${nextCursor}`;
      }
      assert.deepEqual(seen, ids(2, 7), `by ${limit}`);
    }
  });

  it('accepts times as days, with fractions and with offsets', async () => {
    for (const query of [
      '?from=2026-01-31&to=9999-12-31',
      '?from=2024-02-29',
      '?from=1970-01-01T00:00Z&tool=early',
      '?from=2026-01-31T09:30:00.5Z',
      '?from=2026-01-31T09:30:00%2B02:00',
    ]) {
      assert.equal((await get(query)).status, 200, query);
    }
  });

  const otherKind = `tu_${'0'.repeat(32)}`;
  const malformed: readonly (readonly [query: string, code: ErrorCode, param: string])[] = [
    ...['', '0', '101', '-1', '1.5', 'ten', '1e1', '0x5', '%205', '٣', '1000'].map(
      (limit) => [`limit=${limit}`, 'invalid_request', 'limit'] as const,
    ),
    ['limit=1&limit=2', 'invalid_request', 'limit'],
    ...['', 'x', 'chg_', `chg_${'g'.repeat(32)}`, otherKind, '0', `chg_${'0'.repeat(33)}`].map(
      (cursor) => [`cursor=${cursor}`, 'invalid_cursor', 'cursor'] as const,
    ),
    ['cursor=a&cursor=b', 'invalid_request', 'cursor'],
    ...['from', 'to'].flatMap((name) =>
      [
        '',
        'yesterday',
        '0',
        '1767225600',
        '2026',
        '2026-1-1',
        '2026-13-01',
        '2026-02-31',
        '2026-02-29',
        '2026-01-01T25:00Z',
        '2026-01-01T00:00:00',
        '2026-01-01T00:00:00.Z',
        '2026-01-01T00:00:00.0000000001Z',
        '2026-01-01T00:00:00+02:00',
        '1969-12-31',
        '+010000-01-01',
        '2026-01-01%00',
      ].map((time) => [`${name}=${time}`, 'invalid_request', name] as const),
    ),
    ['from=2026-01-01&from=2026-01-02', 'invalid_request', 'from'],
    ...['', 'x', 'cns_', `cns_${'g'.repeat(32)}`, otherKind].map(
      (id) => [`consumerId=${id}`, 'invalid_request', 'consumerId'] as const,
    ),
    ['tool=a&tool=b', 'invalid_request', 'tool'],
    ['tool=nul%00', 'invalid_request', 'tool'],
  ];
  for (const [query, code, param] of malformed) {
    it(`refuses ?${query.slice(0, 60)}`, async () => {
      assertError(await get(`?${query}`), 400, code, param);
    });
  }

  const absent = [
    'chg_',
    'x',
    'chg_%00',
    `chg_${'0'.repeat(32)}`,
    '..%2F..',
    '%E0%A4%A',
    otherKind,
  ];
  for (const id of [...absent, '__proto__', 'x'.repeat(5_000)]) {
    it(`answers not_found for the charge ${id.slice(0, 40)}`, async () => {
      const answer = await call(api, 'GET', `/v1/charges/${id}`, { key: developer.developerKey });
      assertError(answer, 404, 'not_found');
    });
  }
});
