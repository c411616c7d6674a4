/** The meaning of the processor's objects: only certain payments count as paid, only certain ends as over. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { wireId } from '../../src/domain/ids.ts';
import type { Micros } from '../../src/domain/money.ts';
import type { Verdict } from '../../src/domain/verdict.ts';
import {
  failureOf,
  refusedFor,
  PaymentMismatchError,
  verdictOfIntent,
  verdictOfSession,
} from '../../src/stripe/verdict.ts';

const expected = {
  id: '01900000-0000-7000-8000-000000000001',
  amountMicros: 25_000_000 as Micros,
  isTaxed: false,
  taxMicros: 0 as Micros,
};
const metadata = { top_up_id: wireId('topUp', expected.id) };
const PAID = {
  status: 'succeeded',
  amount_received: 2_500,
  currency: 'usd',
  metadata,
  latest_charge: { disputed: false, amount_refunded: 0 },
};
const IS_PAID: Verdict = {
  kind: 'paid',
  paymentIntentId: 'pi_1',
  paidMicros: expected.amountMicros,
  taxMicros: 0 as Micros,
  hasReversals: false,
};
const OPEN: Verdict = { kind: 'open' };
const UNDER_WAY: Verdict = { kind: 'open', isUnderWay: true };
const EXPIRED: Verdict = { kind: 'expired' };

const intent = (fields: object) =>
  ({
    id: 'pi_1',
    last_payment_error: null,
    metadata,
    ...fields,
  }) as unknown as Stripe.PaymentIntent;
const session = (fields: object) =>
  ({
    id: 'cs_1',
    payment_status: 'unpaid',
    payment_intent: null,
    amount_total: 2_500,
    currency: 'usd',
    metadata,
    ...fields,
  }) as unknown as Stripe.Checkout.Session;
const declined = (code: string, type = 'card') => ({
  status: 'requires_payment_method',
  last_payment_error: { code, payment_method: { type } },
});
/** With the bank's details. */
const declinedFor = (details: object) => ({
  status: 'requires_payment_method',
  last_payment_error: {
    code: 'card_declined',
    payment_method: { id: 'pm_1', type: 'card' },
    ...details,
  },
});
const NEVER = 'do_not_try_again';
const REFUSED = refusedFor('pm_1');
const failed = (code: Parameters<typeof failureOf>[0]): Verdict => ({
  kind: 'failed',
  failure: failureOf(code),
});

describe('the verdict on a payment intent', () => {
  for (const [what, fields, verdict] of [
    ['succeeded', PAID, IS_PAID],
    [
      'succeeded and in part refunded',
      { ...PAID, latest_charge: { disputed: false, amount_refunded: 1 } },
      { ...IS_PAID, hasReversals: true },
    ],
    ['canceled', { status: 'canceled' }, EXPIRED],
    ['untried', { status: 'requires_payment_method' }, OPEN],
    ['unconfirmed', { status: 'requires_confirmation' }, OPEN],
    ['processing', { status: 'processing' }, OPEN],
    ['of a status that is not known yet', { status: 'something_new' }, OPEN],
    ['declined', declined('card_declined'), failed('card_declined')],
    ['on a card that has expired', declined('expired_card'), failed('card_expired')],
    ['that its bank advises not to try again', declinedFor({ advice_code: NEVER }), REFUSED],
    ['on a card that was stolen', declinedFor({ decline_code: 'stolen_card' }), REFUSED],
    [
      'that its bank advises to try later',
      declinedFor({ advice_code: 'try_again_later', decline_code: 'insufficient_funds' }),
      failed('card_declined'),
    ],
    [
      'that its bank asks about',
      declined('authentication_required'),
      { kind: 'open', needsPayer: true },
    ],
    ['that waits for its payer', { status: 'requires_action' }, { kind: 'open', needsPayer: true }],
    [
      'whose debit failed',
      declined('debit_not_authorized', 'us_bank_account'),
      failed('payment_failed'),
    ],
  ] as const) {
    it(`${what} is ${verdict.kind}`, () => {
      assert.deepEqual(verdictOfIntent(intent(fields), expected), verdict);
    });
  }

  for (const [what, fields] of [
    ['amount', { amount_received: 2_499 }],
    ['currency', { currency: 'eur' }],
    ['owner', { metadata: { top_up_id: 'tu_other' } }],
  ] as const) {
    it(`of another ${what} is missing: a person has to look, until it is refunded`, () => {
      const other = intent({ ...PAID, ...fields });
      assert.throws(() => verdictOfIntent(other, expected), PaymentMismatchError);
      const refunded = (cents: number) => ({
        ...other,
        latest_charge: { amount_refunded: cents } as Stripe.Charge,
      });
      const { amount_received: all } = other;
      assert.throws(() => verdictOfIntent(refunded(all - 1), expected), PaymentMismatchError);
      assert.deepEqual(verdictOfIntent(refunded(all), expected), EXPIRED);
    });
  }
});

describe('the verdict on a checkout session', () => {
  for (const [what, fields, verdict] of [
    ['open', { status: 'open' }, OPEN],
    [
      'open after a decline',
      { status: 'open', payment_intent: intent(declined('card_declined')) },
      OPEN,
    ],
    ['expired', { status: 'expired' }, EXPIRED],
    ['paid', { status: 'complete', payment_status: 'paid', payment_intent: intent(PAID) }, IS_PAID],
    [
      'paid as it expired',
      { status: 'expired', payment_status: 'paid', payment_intent: 'pi_1' },
      IS_PAID,
    ],
    [
      'complete, its debit in progress',
      { status: 'complete', payment_intent: intent({ status: 'processing' }) },
      UNDER_WAY,
    ],
    [
      'complete, its bank account to be verified',
      { status: 'complete', payment_intent: intent({ status: 'requires_action' }) },
      UNDER_WAY,
    ],
    [
      'complete, its debit failed',
      {
        status: 'complete',
        payment_intent: intent(declined('debit_not_authorized', 'us_bank_account')),
      },
      {
        kind: 'failed',
        failure: {
          code: 'payment_failed',
          message:
            'The bank did not complete the payment. Top up again with another account or card.',
        },
      },
    ],
    [
      'complete, its debit done a moment ago',
      { status: 'complete', payment_intent: intent(PAID) },
      IS_PAID,
    ],
  ] as const) {
    it(`${what} is ${verdict.kind}`, () => {
      assert.deepEqual(verdictOfSession(session(fields), expected), verdict);
    });
  }

  it('that was free is missing: it is not ours', () => {
    const free = session({ status: 'complete', payment_status: 'no_payment_required' });
    assert.throws(() => verdictOfSession(free, expected), PaymentMismatchError);
  });

  it('that is paid without a payment is missing', () => {
    const unnamed = session({ status: 'complete', payment_status: 'paid' });
    assert.throws(() => verdictOfSession(unnamed, expected), PaymentMismatchError);
  });
});
