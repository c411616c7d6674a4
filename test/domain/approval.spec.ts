/** The shortfall of an approval: what a top-up has to add. */
import assert from 'node:assert/strict';
import { shortfallOf } from '../../src/domain/approval.ts';
import { asMicros } from '../../src/domain/money.ts';

const shortfall = (amount: number, balance: number, debt: number) =>
  shortfallOf({
    amountMicros: asMicros(amount),
    balanceMicros: asMicros(balance),
    debtMicros: asMicros(debt),
  });

describe('the shortfall of an approval', () => {
  it('is the amount and the debt less the balance, in whole cents', () => {
    assert.equal(shortfall(2_000_000, 750_000, 0), 1_250_000);
    assert.equal(shortfall(2_000_001, 750_000, 0), 1_260_000);
    assert.equal(shortfall(2_000_000, 0, 300_000), 2_300_000);
    assert.equal(shortfall(2_000_000, -100_000, 0), 2_100_000);
  });

  it('is at least what can be paid', () => {
    assert.equal(shortfall(20_000, 10_000, 0), 500_000);
    assert.equal(shortfall(20_000, 900_000, 0), 500_000);
  });
});
