/** The pricing helper (specification section 4.3, rule 4). */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { Farebox, type FareboxError } from '@farebox/client';
import { ScriptedService, charged } from './scripted-service.ts';

const secretKey = 'fare_sk_live_x';
const apiKey = 'fare_ck_live_x';
const farebox = new Farebox({ secretKey, baseUrl: 'http://127.0.0.1' });

describe('client: prices', () => {
  it('charges the price of the map, given the key and the tool', async () => {
    await using api = await ScriptedService.start(charged);
    const prices = new Farebox({ secretKey, baseUrl: api.url }).withPrices({
      search: 0.02,
      'word count': 0.000001,
    });
    await prices.charge({ apiKey, tool: 'search', idempotencyKey: 'k' });
    await prices.charge({ apiKey, tool: 'word count' });
    assert.deepEqual(
      api.seen.map(({ body }) => body),
      [
        { apiKey, tool: 'search', amount: 0.02 },
        { apiKey, tool: 'word count', amount: 0.000001 },
      ],
    );
    assert.equal(api.keys[0], 'k');
  });

  it('lets no request change a price', async () => {
    await using api = await ScriptedService.start(charged);
    const prices = new Farebox({ secretKey, baseUrl: api.url }).withPrices({ search: 0.02 });
    const request = { apiKey, tool: 'search' as const, amount: 5 };
    await prices.charge(request);
    assert.deepEqual(api.seen[0]?.body, { apiKey, tool: 'search', amount: 0.02 });
  });

  for (const tool of ['searches', 'constructor', '__proto__', 'toString', '', undefined]) {
    it(`raises unknown_tool for ${inspect(tool)}`, async () => {
      const prices: { charge(request: object): Promise<unknown> } = farebox.withPrices({
        search: 1,
      });
      await assert.rejects(prices.charge({ apiKey, tool }), (error: FareboxError) => {
        assert.equal(error.code, 'unknown_tool');
        assert.equal(error.outcome, 'not_charged');
        return true;
      });
    });
  }

  it('ignores later changes of the map', async () => {
    await using api = await ScriptedService.start(charged);
    const map = { search: 0.02 };
    const prices = new Farebox({ secretKey, baseUrl: api.url }).withPrices(map);
    map.search = 9;
    await prices.charge({ apiKey, tool: 'search' });
    assert.deepEqual(api.seen[0]?.body, { apiKey, tool: 'search', amount: 0.02 });
  });

  for (const price of [
    0,
    -1,
    NaN,
    Infinity,
    1e-7,
    0.1234567,
    1_000_001,
    '0',
    '0.0000001',
    'free',
    null,
    '0.0200000',
    '2e-2',
    '00000000000000000000.02',
    2n,
  ]) {
    it(`refuses ${inspect(price)} as a price`, () => {
      assert.throws(() => farebox.withPrices({ search: price as number }), RangeError);
    });
  }

  it('takes the smallest and the largest amount that can be charged', () => {
    farebox.withPrices({ smallest: 0.000001, largest: 1_000_000, tenth: 0.1, third: 0.333333 });
  });

  it('knows its tools by type', () => {
    const prices = farebox.withPrices({ search: 0.02 });
    // @ts-expect-error the map has no such tool
    const refused = prices.charge({ apiKey: '', tool: 'searches' });
    return assert.rejects(refused, { code: 'unknown_tool' });
  });
});
