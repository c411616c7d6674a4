/** What the processor's refunds and disputes mean, by their status. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import type { Stripe } from 'stripe';
import { wireId } from '../../src/domain/ids.ts';
import { reportOfDispute, reportOfRefund } from '../../src/stripe/reversals.ts';

const REFUNDS = {
  pending: 'made',
  requires_action: 'made',
  succeeded: 'made',
  failed: 'failed',
  canceled: 'failed',
};

const DISPUTES = {
  warning_needs_response: 'won',
  warning_under_review: 'won',
  warning_closed: 'won',
  needs_response: 'open',
  under_review: 'open',
  appeal_needs_response: 'open',
  appeal_under_review: 'open',
  won: 'won',
  lost: 'lost',
  prevented: 'won',
  something_new: 'won',
};

describe('at the processor', () => {
  for (const [status, meaning] of Object.entries(REFUNDS)) {
    it(`a refund that is ${status} is ${meaning}`, () => {
      assert.equal(reportOfRefund(refund({ status })).status, meaning);
    });
  }

  for (const [status, meaning] of Object.entries(DISPUTES)) {
    it(`a dispute that is ${status} and moved no money is ${meaning}`, () => {
      assert.equal(reportOfDispute(dispute({ status })).status, meaning);
    });
  }

  it('a dispute in an unknown state is lost when it took money, won when the money came back', () => {
    const taken = { amount: -1_000 } as Stripe.BalanceTransaction;
    const returned = { amount: 1_000 } as Stripe.BalanceTransaction;
    const lost = dispute({ status: 'prevented', balance_transactions: [taken] });
    assert.equal(reportOfDispute(lost).status, 'lost');
    const won = dispute({ status: 'prevented', balance_transactions: [taken, returned] });
    assert.equal(reportOfDispute(won).status, 'won');
  });

  it('a refund names the request that caused it, if there is one', () => {
    const id = randomUUIDv7();
    const metadata = { refund_id: wireId('topUpRefund', id) };
    const named = reportOfRefund(refund({ metadata }));
    assert.ok(named.kind === 'refund' && named.refundId === id);
    const foreign = reportOfRefund(refund({ metadata: { refund_id: 'ours' } }));
    assert.ok(foreign.kind === 'refund' && foreign.refundId === undefined);
  });

  it('a dispute in another currency counts for the dollars that it took', () => {
    const taken = { amount: -1_234, currency: 'usd' } as Stripe.BalanceTransaction;
    const returned = { amount: 1_200, currency: 'usd' } as Stripe.BalanceTransaction;
    const reported = reportOfDispute(
      dispute({ currency: 'eur', amount: 1_100, balance_transactions: [taken, returned] }),
    );
    assert.equal(reported.grossMicros, 12_340_000);
  });

  it('a dispute in another currency that took no dollars counts for all of its payment', () => {
    const charge = { id: 'ch_1', amount: 1_000, currency: 'usd' } as Stripe.Charge;
    const taken = { amount: -1_100, currency: 'eur' } as Stripe.BalanceTransaction;
    for (const balance_transactions of [[], [taken]]) {
      const eur = dispute({ currency: 'eur', amount: 1_100, balance_transactions, charge });
      assert.equal(reportOfDispute(eur).grossMicros, 10_000_000);
    }
  });

  it('other amounts are dollars, and any other currency needs a person', () => {
    assert.equal(reportOfRefund(refund({ amount: 1 })).grossMicros, 10_000);
    assert.throws(() => reportOfRefund(refund({ currency: 'eur' })), /usd expected, eur found/);
    const charge = { id: 'ch_1', amount: 1_000, currency: 'eur' } as Stripe.Charge;
    const foreign = dispute({ currency: 'eur', charge });
    assert.throws(() => reportOfDispute(foreign), /usd expected, eur found/);
  });
});

function refund(changes: object): Stripe.Refund {
  const plain = { id: 're_1', amount: 1_000, currency: 'usd', status: 'succeeded', metadata: null };
  return { ...plain, ...changes } as unknown as Stripe.Refund;
}

function dispute(changes: object): Stripe.Dispute {
  const plain = { id: 'dp_1', amount: 1_000, currency: 'usd', balance_transactions: [] };
  return { ...plain, ...changes } as unknown as Stripe.Dispute;
}
