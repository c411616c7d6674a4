/** Exports: the rows of the JSON lists under the same filters, all of them. */
import assert from 'node:assert/strict';
import { ChargeReply, ChargesReply } from '../../../src/schemas/charges.ts';
import { UsageReply } from '../../../src/schemas/balance.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';

describe('exports', () => {
  let api: TestApi;
  let developer: TestAccount;
  let consumer: TestAccount;

  before(async () => {
    api = await startTestApi();
    [developer, consumer] = [await api.createAccount(10), await api.createAccount(10)];
    const theirs = { ...consumer, developerKey: developer.developerKey };
    await charge(api, developer, { tool: '=cmd', amount: 0.1, metadata: { note: 'a,"b"', n: 1 } });
    await charge(api, theirs, { tool: '🦦 "quoted", by two', amount: 0.000001 });
    await charge(api, theirs, { tool: '-1', amount: 2 });
    await charge(api, consumer, { tool: 'elsewhere', amount: 1 });
  });
  after(() => api.stop());

  const csv = async (path: string, key: string): Promise<string[][]> => {
    const answer = await call(api, 'GET', path, { key });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.match(answer.headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
    return parsed(String(answer.body));
  };
  it('of charges contain the same as the list, under each of its filters', async () => {
    const queries = [
      '',
      '?tool=-1',
      '?tool=none',
      `?consumerId=${consumer.consumerId}`,
      `?consumerId=${consumer.consumerId}&tool=-1`,
      '?from=2026-01-01',
      '?to=2026-01-01',
    ];
    for (const query of queries) {
      const list = await call(api, 'GET', `/v1/charges${query}`, { key: developer.developerKey });
      const { charges } = bodyOf(list, 200, ChargesReply);
      assert.deepEqual(await csv(`/v1/charges.csv${query}`, developer.developerKey), [
        ['id', 'createdAt', 'tool', 'amount', 'refunded', 'consumerId', 'metadata'],
        ...charges.map(({ id, createdAt, tool, amount, refunded, consumerId, metadata }) => [
          id,
          createdAt,
          safe(tool),
          decimal(amount),
          decimal(refunded),
          consumerId,
          metadata === null ? '' : JSON.stringify(metadata),
        ]),
      ]);
    }
  });

  it('of usage contain the same as the list, under each of its filters', async () => {
    for (const query of ['', '?tool=-1', '?from=2026-01-01', '?to=2026-01-01']) {
      const list = await call(api, 'GET', `/v1/usage${query}`, { key: consumer.consumerKey });
      const { charges } = bodyOf(list, 200, UsageReply);
      assert.deepEqual(await csv(`/v1/usage.csv${query}`, consumer.consumerKey), [
        ['id', 'createdAt', 'tool', 'amount', 'refunded', 'developerId'],
        ...charges.map(({ id, createdAt, tool, amount, refunded, developerId }) => [
          id,
          createdAt,
          safe(tool),
          decimal(amount),
          decimal(refunded),
          developerId,
        ]),
      ]);
    }
  });

  it('of earnings contain the charges of each tool, day by day or hour by hour', async () => {
    const key = developer.developerKey;
    await charge(api, developer, { tool: '=cmd', amount: 0.2 });
    const list = await call(api, 'GET', '/v1/charges', { key });
    const { charges } = bodyOf(list, 200, ChargesReply);
    for (const [query, digits, rest] of [
      ['', 10, 'T00:00:00.000Z'],
      ['?interval=day&from=2026-01-01', 10, 'T00:00:00.000Z'],
      ['?interval=hour', 13, ':00:00.000Z'],
    ] as const) {
      const groups = Map.groupBy(charges, ({ tool, createdAt }) =>
        JSON.stringify([safe(tool), createdAt.slice(0, digits) + rest]),
      );
      const expected = [...groups].map(([group, all]) => [
        ...(JSON.parse(group) as string[]),
        String(all.length),
        decimal(all.reduce((total, { amount }) => total + amount, 0)),
      ]);
      const [header, ...rows] = await csv(`/v1/earnings.csv${query}`, key);
      assert.deepEqual(header, ['tool', 'from', 'charges', 'amount']);
      assert.deepEqual(new Set(rows.map(String)), new Set(expected.map(String)));
      assert.equal(rows.length, expected.length);
    }
    assert.equal((await csv('/v1/earnings.csv?to=2026-01-01', key)).length, 1);
    for (const [query, param] of [
      ['from=2026-01-01T00:30Z', 'from'],
      ['interval=week', 'interval'],
      ['from=2026-01-02&to=2026-01-01', 'from'],
    ] as const) {
      const answer = await call(api, 'GET', `/v1/earnings.csv?${query}`, { key });
      assertError(answer, 400, 'invalid_request', param);
    }
  });

  it('contain every row once, newest first, though they are read by pages', async () => {
    const payer = await api.createAccount(100);
    const made: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const charges = Array.from({ length: 500 }, () => ({
        apiKey: payer.consumerKey,
        tool: 'many',
        amount: 0.01,
      }));
      const answer = await call(api, 'POST', '/v1/charges/batch', {
        key: payer.developerKey,
        body: { charges },
      });
      const { results } = answer.body as { results: { id: string }[] };
      made.push(...results.map(({ id }) => id));
    }
    for (const [path, key] of [
      ['/v1/charges.csv', payer.developerKey],
      ['/v1/charges.csv?tool=many', payer.developerKey],
      ['/v1/usage.csv', payer.consumerKey],
    ] as const) {
      const ids = (await csv(path, key)).slice(1).map(([id]) => id);
      assert.deepEqual(ids, made.toSorted().toReversed(), path);
    }
  });

  it('hide the rows of others', async () => {
    const stranger = await api.createAccount(1);
    const query = `?consumerId=${consumer.consumerId}`;
    assert.equal((await csv(`/v1/charges.csv${query}`, stranger.developerKey)).length, 1);
    assert.equal((await csv('/v1/usage.csv', stranger.consumerKey)).length, 1);
  });

  it('refuse the same filters as the list, with the same errors', async () => {
    for (const [path, param, key] of [
      ['/v1/charges.csv?from=yesterday', 'from', developer.developerKey],
      ['/v1/charges.csv?consumerId=x', 'consumerId', developer.developerKey],
      ['/v1/charges.csv?tool=a&tool=b', 'tool', developer.developerKey],
      ['/v1/usage.csv?to=2026', 'to', consumer.consumerKey],
    ] as const) {
      assertError(await call(api, 'GET', path, { key }), 400, 'invalid_request', param);
    }
  });

  it('change neither the books nor the next charge', async () => {
    await api.changingNothing(() => csv('/v1/charges.csv', developer.developerKey));
    bodyOf(await charge(api, developer), 201, ChargeReply);
  });
});

const decimal = (dollars: number): string => dollars.toFixed(6);
const safe = (text: string): string => (/^[=+@-]/.test(text) ? `'${text}` : text);

/** Parses RFC 4180 by its own grammar. */
function parsed(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain = '', end] of text.matchAll(
    /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g,
  )) {
    if (end === '' && row.length === 0) break;
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== ',') {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}
