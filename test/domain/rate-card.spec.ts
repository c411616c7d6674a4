/** Rate cards: prices are exact to a picodollar, and what units cost is rounded once. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { costOf, dollarsOfPicos, picosOfDollars } from '../../src/domain/rate-card.ts';

const LARGEST_PICOS = 10n ** 15n;
const anyPicos = fc.bigInt({ min: 0n, max: LARGEST_PICOS });
const cardOf = (prices: Readonly<Record<string, bigint>>) => ({
  version: 1,
  picosOf: new Map(Object.entries(prices)),
});

describe('a price of a unit', () => {
  it('survives JSON, as a number and as a decimal string', () => {
    fc.assert(
      fc.property(anyPicos, (picos) => {
        const digits = String(picos).padStart(13, '0');
        const decimal = `${digits.slice(0, -12)}.${digits.slice(-12)}`;
        assert.equal(picosOfDollars(decimal), picos);
        assert.equal(picosOfDollars(JSON.parse(JSON.stringify(dollarsOfPicos(picos)))), picos);
        assert.equal(picosOfDollars(Number(decimal)), picos);
      }),
      { examples: [[0n], [1n], [LARGEST_PICOS], [LARGEST_PICOS - 1n], [250_000n]] },
    );
  });

  it('is refused when it is negative, finer than a picodollar, above $1,000, or no number', () => {
    const refused = [
      -0.1,
      1e-13,
      2.5e-13,
      1000.000001,
      1e21,
      Number.NaN,
      Infinity,
      '-1',
      '',
      '.5',
      '1.',
      '1e-6',
      '0.0000000000001',
      '1000.000000000001',
      ' 1',
      '1,5',
      '٣',
    ];
    for (const sent of refused) assert.equal(picosOfDollars(sent), undefined, String(sent));
    assert.equal(picosOfDollars(-0), 0n);
    assert.equal(picosOfDollars('1000'), LARGEST_PICOS);
  });
});

describe('the cost of units', () => {
  it('is the exact sum, rounded once to the micro-dollar, half to even', () => {
    // 0.5, 1.5 and 2.5 micro-dollars, and a picodollar beside them.
    const card = cardOf({ half: 500_000n, pico: 1n });
    const cost = (half: number, pico = 0) => costOf(card, { half, pico });
    assert.deepEqual([cost(3), cost(5), cost(7), cost(2)], [2, 2, 4, 1]);
    assert.equal(cost(4, 500_001), 3);
    assert.equal(cost(4, 499_999), 2);
  });

  it('is at least a micro-dollar, and nothing only if the sum is', () => {
    const card = cardOf({ pico: 1n, free: 0n });
    assert.equal(costOf(card, { pico: 1 }), 1);
    assert.equal(costOf(card, { pico: 0, free: 9 }), 0);
  });

  it('is within half a micro-dollar of the sum, for any card and units', () => {
    const anyUnits = fc.array(fc.tuple(anyPicos, fc.integer({ min: 0, max: 1_000 })), {
      minLength: 1,
      maxLength: 20,
    });
    fc.assert(
      fc.property(anyUnits, (units) => {
        const named = units.map(([picos, count], n) => ({ unit: `u${n}`, picos, count }));
        const sum = units.reduce((total, [picos, count]) => total + picos * BigInt(count), 0n);
        const cost = costOf(
          cardOf(Object.fromEntries(named.map(({ unit, picos }) => [unit, picos]))),
          Object.fromEntries(named.map(({ unit, count }) => [unit, count])),
        );
        if (sum > 10n ** 18n + 500_000n) return assert.equal(cost, undefined);
        assert.ok(typeof cost === 'number');
        const off = BigInt(cost) * 1_000_000n - sum;
        assert.ok(2n * (off < 0n ? -off : off) <= 1_000_000n || cost === 1);
      }),
    );
  });

  it('names a unit without a price, even one called constructor', () => {
    assert.deepEqual(costOf(cardOf({ input: 1n }), { input: 1, output: 1 }), { unit: 'output' });
    assert.deepEqual(costOf(cardOf({ input: 1n }), { constructor: 1 }), { unit: 'constructor' });
  });

  it('is none above $1,000,000', () => {
    const card = cardOf({ dollar: 10n ** 12n });
    assert.equal(costOf(card, { dollar: 1_000_000 }), 10 ** 12);
    assert.equal(costOf(card, { dollar: 1_000_001 }), undefined);
    assert.equal(costOf(card, { dollar: 10 ** 12 }), undefined);
  });
});
