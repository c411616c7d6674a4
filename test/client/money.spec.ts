/** Arithmetic on money: exact, rounded once in a named direction, and sent unchanged. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { Farebox, usd, type Rounding } from '@farebox/client';
import { CHARGE, ScriptedService, answer, charged, raised } from './scripted-service.ts';

const secretKey = 'fare_sk_live_x';
const apiKey = 'fare_ck_live_x';
const micros = fc.bigInt({ min: 0n, max: 10n ** 15n });
const decimalOf = (value: bigint) =>
  `${value / 1_000_000n}.${String(value % 1_000_000n).padStart(6, '0')}`;

describe('client: usd()', () => {
  it('is exact where floats are not', () => {
    assert.equal(usd(0.07).times(3).toString(), '0.210000');
    assert.equal(usd(0.1).plus(0.2).toString(), '0.300000');
    assert.equal(usd(0.000002).times(1_234).toString(), '0.002468');
    assert.equal(
      usd(2e-7)
        .times('1e1'.length * 10)
        .toString(),
      '0.000006',
    );
    assert.equal(usd('3').per(1_000_000).times(7).toString(), '0.000021');
    assert.equal(usd(1).per(3).times(3).toString(), '1.000000');
  });

  it('returns any amount that it is given', () => {
    fc.assert(
      fc.property(micros, (value) => {
        assert.equal(usd(decimalOf(value)).toString(), decimalOf(value));
        assert.equal(JSON.stringify(usd(decimalOf(value))), `"${decimalOf(value)}"`);
      }),
    );
  });

  it('rounds in the given direction: up never below, down never above, both within a micro-dollar', () => {
    const units = fc.bigInt({ min: 1n, max: 10n ** 9n });
    fc.assert(
      fc.property(micros, units, units, (price, quantity, per) => {
        const exact = usd(decimalOf(price)).times(quantity).per(per);
        const rounded = (rounding: Rounding) =>
          BigInt(exact.round(rounding).toString().replace('.', '')) * per;
        const of = price * quantity;
        assert.ok(rounded('up') >= of && rounded('up') - of < per);
        assert.ok(rounded('down') <= of && of - rounded('down') < per);
        const off = rounded('half_even') - of;
        assert.ok(2n * (off < 0n ? -off : off) <= per);
      }),
    );
  });

  it('rounds a half to the even micro-dollar', () => {
    const halves = ['0.0000005', '0.0000015', '0.0000025', '0.00000250001'];
    assert.deepEqual(
      halves.map((half) => usd(half).round('half_even').toString()),
      ['0.000000', '0.000002', '0.000002', '0.000003'],
    );
  });

  it('never rounds by itself: an amount with too many decimals is refused, with advice', async () => {
    const fine = usd('0.0000001').times(3);
    assert.throws(() => fine.toString(), { name: 'RangeError', message: /round\('up'\)/ });
    // @ts-expect-error there is no such rounding
    assert.throws(() => fine.round('nearest'), TypeError);
    const farebox = new Farebox({ secretKey, baseUrl: 'http://127.0.0.1:9' });
    const error = await raised(farebox.charge({ apiKey, tool: 'search', amount: fine }));
    assert.equal(error.code, 'invalid_amount');
    assert.equal(error.param, 'amount');
    assert.match(error.message, /round\('up'\)/);
  });

  for (const value of ['', '-1', -1, NaN, Infinity, '1,5', '$1', '0x1', '1e999999', null, {}, []]) {
    it(`refuses ${JSON.stringify(value)}`, () => {
      assert.throws(() => usd(value as number), {
        name: 'RangeError',
        message: /Farebox: .*decimal/,
      });
      assert.throws(() => usd(1).times(value as number), RangeError);
    });
  }

  it('refuses a price per zero units', () => {
    assert.throws(() => usd(1).per(0), RangeError);
  });
});

describe('client: amounts', () => {
  it('are sent as given: numbers, decimal strings, usd()', async () => {
    const refund = { id: 'rf_1', chargeId: CHARGE.id, amount: 1, refunded: 1 };
    await using api = await ScriptedService.start(charged, charged, charged, answer(201, refund));
    const farebox = new Farebox({ secretKey, baseUrl: api.url });
    for (const amount of [0.02, '0.02', usd('0.02')]) {
      await farebox.charge({ apiKey, tool: 'search', amount });
    }
    await farebox.refund({ chargeId: CHARGE.id, amount: usd(0.02) });
    assert.deepEqual(
      api.seen.map(({ body }) => (body as { amount: unknown }).amount),
      [0.02, '0.02', '0.020000', '0.020000'],
    );
  });

  it('may have any of these forms in a price map', async () => {
    await using api = await ScriptedService.start(charged);
    const farebox = new Farebox({ secretKey, baseUrl: api.url });
    const prices = farebox.withPrices({ a: 0.02, b: '0.02', c: usd('1').per(3).round('down') });
    for (const tool of ['a', 'b', 'c'] as const) await prices.charge({ apiKey, tool });
    assert.deepEqual(
      api.seen.map(({ body }) => (body as { amount: unknown }).amount),
      [0.02, '0.02', '0.333333'],
    );
  });
});
