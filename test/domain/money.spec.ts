/** Money: dollars on the wire and micro-dollars inside correspond one to one, and nothing is ever rounded. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import {
  asMicros,
  centsOf,
  CHARGE_MICROS_MAX,
  decimalOf,
  dollarsOf,
  formatDollars,
  isWholeCents,
  MANUAL_MICROS_MAX,
  microsOfCents,
  microsOfDollars,
} from '../../src/domain/money.ts';

/** Up to $4,294,967,296 either way, a number of dollars and its micro-dollars determine each other. */
const LARGEST = 2 ** 32 * 1_000_000;
const anyMicros = fc.oneof(
  fc.integer({ min: -LARGEST, max: LARGEST }),
  fc.integer({ min: 0, max: 2_000_000 }),
);

/** Whole micros as a person writes them: all digits, no exponent. */
describe('money', () => {
  it('survives JSON as the same micro-dollars', () => {
    fc.assert(
      fc.property(anyMicros, (micros) => {
        const wire = JSON.stringify({ amount: dollarsOf(asMicros(micros)) });
        assert.equal(microsOfDollars(JSON.parse(wire).amount) === micros, true);
      }),
      { examples: [[0], [1], [-1], [MANUAL_MICROS_MAX], [LARGEST], [-LARGEST]] },
    );
  });

  it('is read as written: any decimal of up to six places is that many micro-dollars', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: LARGEST }), (micros) => {
        assert.equal(microsOfDollars(JSON.parse(decimalOf(asMicros(micros)))), micros);
      }),
      { examples: [[100_000], [290_000], [1_005_000], [4_350_000], [CHARGE_MICROS_MAX - 1]] },
    );
  });

  it('is the same as a string and as a number, to the last place', () => {
    fc.assert(
      fc.property(anyMicros, (micros) => {
        const text = decimalOf(asMicros(micros));
        assert.equal(microsOfDollars(text) === micros, true);
        assert.equal(microsOfDollars(text.replace(/\.?0+$/, '')) === micros, true);
      }),
      { examples: [[0], [1], [-1], [Number.MAX_SAFE_INTEGER], [100_000]] },
    );
  });

  it('accepts no string but a plain decimal of at most six places', () => {
    const wrong = [
      '',
      ' ',
      '.',
      '.5',
      '5.',
      '1e2',
      '0x1',
      '1,5',
      ' 1',
      '1 ',
      '+1',
      '--1',
      '$1',
      'NaN',
      '١',
    ];
    const large = ['9007199254.740992', '9'.repeat(17), '1'.repeat(400)];
    for (const text of [...wrong, ...large, '0.0000000', '0.1234567']) {
      assert.equal(microsOfDollars(text), undefined, text);
    }
  });

  it('is refused when it is finer than a micro-dollar, by any margin', () => {
    const finer = fc.tuple(
      fc.integer({ min: 0, max: CHARGE_MICROS_MAX }),
      fc.integer({ min: 1, max: 999 }),
    );
    fc.assert(
      fc.property(finer, ([micros, thousandths]) => {
        const text = decimalOf(asMicros(micros)) + String(thousandths).padStart(3, '0');
        assert.equal(microsOfDollars(JSON.parse(text)), undefined);
      }),
      { examples: [[[0, 1]], [[0, 999]], [[CHARGE_MICROS_MAX, 1]]] },
    );
  });

  it('never becomes another amount: an accepted number is exactly the given one', () => {
    fc.assert(
      fc.property(fc.double(), (dollars) => {
        const micros = microsOfDollars(dollars);
        if (micros !== undefined) assert.equal(dollarsOf(micros) === dollars, true);
      }),
      { examples: [[1e-7], [0.1 + 0.2], [-Infinity], [Number.NaN], [2 ** 53]] },
    );
  });

  it('has a distinct text for each amount', () => {
    const pair = fc.tuple(anyMicros, fc.integer({ min: 1, max: 1_000 }));
    fc.assert(
      fc.property(pair, ([micros, more]) => {
        assert.notEqual(
          JSON.stringify(dollarsOf(asMicros(micros))),
          JSON.stringify(dollarsOf(asMicros(micros + more))),
        );
      }),
    );
  });

  it('reads as dollars and cents in texts, with commas, and more decimals only where there are any', () => {
    const texts = [0, 500_000, 10_000_000, 20_500, 1, -3_250_000, 1_234_567_500_000].map((micros) =>
      formatDollars(asMicros(micros)),
    );
    const small = ['$0.00', '$0.50', '$10.00', '$0.0205', '$0.000001', '-$3.25'];
    assert.deepEqual(texts, [...small, '$1,234,567.50']);
  });

  it('is exact in texts beyond the largest safe integer, as the sum of many accounts', () => {
    const texts = [2n ** 53n, -(2n ** 63n)].map(formatDollars);
    assert.deepEqual(texts, ['$9,007,199,254.740992', '-$9,223,372,036,854.775808']);
  });

  it('is written as a plain decimal of six places, exactly', () => {
    assert.equal(decimalOf(asMicros(Number.MIN_SAFE_INTEGER)), '-9007199254.740991');
    fc.assert(
      fc.property(anyMicros, (micros) => {
        const text = decimalOf(asMicros(micros));
        assert.match(text, /^-?\d+\.\d{6}$/);
        assert.equal(BigInt(text.replace('.', '')), BigInt(micros));
      }),
    );
  });

  it('is whole cents or not payable in cents', () => {
    fc.assert(
      fc.property(anyMicros, (micros) => {
        const isPayable = isWholeCents(asMicros(micros));
        assert.equal(isPayable, micros % 10_000 === 0);
        if (isPayable) assert.equal(microsOfCents(centsOf(asMicros(micros))) === micros, true);
        else assert.throws(() => centsOf(asMicros(micros)), RangeError);
      }),
      { examples: [[10_000], [10_001], [0]] },
    );
  });

  it('throws on a sum that is not a safe integer, since no row may hold one', () => {
    for (const value of [0.5, 2 ** 53, -(2 ** 53), Number.NaN, Infinity]) {
      assert.throws(() => asMicros(value), RangeError);
    }
  });
});
