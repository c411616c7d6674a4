/** The sums of both sides of a difference include the tax. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import type { Settled } from '../../src/store/top-ups/settled-differences.ts';
import { compareTopUp } from '../../src/stripe/compare.ts';
import type { PaymentDispute } from '../../src/stripe/verdict.ts';

const TOP_UP = '01a1fd64-55e5-7aa3-b31e-95f51a48130e';

/** $9.00 and $0.80 of tax, credited for `pi_credited`. */
const booked = {
  topUpId: TOP_UP,
  amountMicros: asMicros(9_000_000),
  paymentIntentId: 'pi_credited',
  creditedMicros: asMicros(9_000_000),
  isTaxed: true,
  taxMicros: asMicros(800_000),
};

function payment(id: string): Stripe.PaymentIntent {
  const metadata = { top_up_id: wireId('topUp', TOP_UP) };
  const paid = { status: 'succeeded', currency: 'usd', amount_received: 980, metadata };
  return { id, ...paid, latest_charge: { amount_refunded: 0 } } as unknown as Stripe.PaymentIntent;
}

const NOTHING = { recorded: [], shown: [], disputes: new Map(), settled: [] } as const;

function compare(...intents: readonly Stripe.PaymentIntent[]) {
  return compareTopUp({ ...NOTHING, booked, intents });
}

const TWICE = {
  kind: 'paid_twice',
  processorMicros: asMicros(19_600_000),
  ledgerMicros: asMicros(9_800_000),
} as const;
const SETTLED: readonly Settled[] = [{ topUpId: TOP_UP, ...TWICE }];
const ENDED = { ...TWICE, processorMicros: TWICE.ledgerMicros };

/** Paid twice, with a dispute of the payment that is not credited. */
function compareDisputed(status: PaymentDispute['status'], settled: readonly Settled[]) {
  const intents = [payment('pi_credited'), payment('pi_other')];
  const disputes = new Map([['pi_other', [{ status, cents: 980 }]]]);
  return compareTopUp({ ...NOTHING, booked, intents, disputes, settled });
}

describe('the comparison of a taxed top-up with Stripe', () => {
  it('finds nothing if it was paid once', () => {
    assert.deepEqual(compare(payment('pi_credited')), []);
  });

  it('has the tax on both sides if it was paid twice', () => {
    assert.deepEqual(compare(payment('pi_credited'), payment('pi_other')), [TWICE]);
  });

  it('has the tax in what the ledger expects if it was not paid', () => {
    assert.deepEqual(compare(), [
      { kind: 'not_paid', processorMicros: 0, ledgerMicros: 9_800_000 },
    ]);
  });
});

describe('the comparison of a second payment that is disputed', () => {
  it('counts an open dispute once the difference is settled', () => {
    assert.deepEqual(compareDisputed('open', []), [TWICE]);
    assert.deepEqual(compareDisputed('open', SETTLED), [ENDED]);
  });

  it('counts a lost dispute, and keeps a settled difference that ends', () => {
    assert.deepEqual(compareDisputed('lost', []), []);
    assert.deepEqual(compareDisputed('lost', SETTLED), [ENDED]);
    assert.deepEqual(compareDisputed('lost', [{ topUpId: TOP_UP, ...ENDED }]), [ENDED]);
  });
});
