/** Shares of tax: over the refunds of a payment, in any amounts, nothing is lost and nothing is returned twice. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { asMicros } from '../../src/domain/money.ts';
import { grossShare, netShare } from '../../src/domain/tax.ts';

const cents = (max: number) => fc.integer({ min: 1, max }).map((n) => n * 10_000);

describe('the shares of a taxed payment', () => {
  it('add up to the payment, whether its parts are given with or without tax', () => {
    const payment = fc.record({
      amountMicros: cents(99_999_999).map(asMicros),
      taxMicros: fc.oneof(fc.constant(0), cents(30_000_000)).map(asMicros),
      parts: fc.array(
        fc.record({ share: fc.double({ min: 0.001, max: 1, noNaN: true }), isGross: fc.boolean() }),
        { maxLength: 8 },
      ),
    });
    fc.assert(
      fc.property(payment, ({ amountMicros, taxMicros, parts }) => {
        const total = amountMicros + taxMicros;
        let taken = { netMicros: asMicros(0), grossMicros: asMicros(0) };
        const take = (net: number, gross: number) => {
          assert.ok(net >= 0 && gross >= net, `${gross} with tax, ${net} without`);
          assert.equal(gross % 10_000, 0, 'whole cents at Stripe');
          taken = {
            netMicros: asMicros(taken.netMicros + net),
            grossMicros: asMicros(taken.grossMicros + gross),
          };
          assert.equal(taken.netMicros === amountMicros, taken.grossMicros === total);
        };
        for (const { share, isGross } of parts) {
          const left = isGross ? total - taken.grossMicros : amountMicros - taken.netMicros;
          const part = Math.floor((left * share) / 10_000) * 10_000;
          if (part === 0) continue;
          if (isGross) take(netShare({ amountMicros, taxMicros }, asMicros(part), taken), part);
          else take(part, grossShare({ amountMicros, taxMicros }, asMicros(part), taken));
        }
        const rest = asMicros(total - taken.grossMicros);
        if (rest > 0) take(netShare({ amountMicros, taxMicros }, rest, taken), rest);
        assert.equal(taken.netMicros, amountMicros);
      }),
      { numRuns: 2_000 },
    );
  });

  it('of what a bank disputes beyond the payment is that amount', () => {
    const payment = { amountMicros: asMicros(10_000_000), taxMicros: asMicros(1_000_000) };
    const none = { netMicros: asMicros(0), grossMicros: asMicros(0) };
    assert.equal(netShare(payment, asMicros(12_000_000), none), 11_000_000);
    const all = { netMicros: asMicros(10_000_000), grossMicros: asMicros(11_000_000) };
    assert.equal(netShare(payment, asMicros(3_000_000), all), 3_000_000);
  });
});
