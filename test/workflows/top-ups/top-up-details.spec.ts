/** What operators read about a top-up in the Temporal UI, as far as it depends on Stripe's dashboard. */
import assert from 'node:assert/strict';
import { subjectOf } from '../../../workflows/top-up-display.ts';

const TOP_UP = {
  topUpId: 'tu_1',
  method: 'checkout',
  amountDollars: 25,
  consumerId: 'cns_1',
  sessionId: 'cs_test_1',
  paymentIntentId: 'pi_1',
} as const;

describe('the details of a top-up', () => {
  it('link the payment and the session to the dashboard of Stripe', () => {
    assert.equal(
      subjectOf({ ...TOP_UP, dashboardUrl: 'https://dashboard.stripe.com/test' }),
      'Top-up `tu_1`: \\$25.00, checkout, for `cns_1`. At the processor: ' +
        '[pi_1](https://dashboard.stripe.com/test/payments/pi_1), ' +
        '[cs_test_1](https://dashboard.stripe.com/test/search?query=cs_test_1).',
    );
  });

  it('name both where there is no dashboard, and neither before it exists', () => {
    assert.match(subjectOf({ ...TOP_UP, dashboardUrl: null }), /processor: `pi_1`, `cs_test_1`\.$/);
    const fresh = { ...TOP_UP, sessionId: null, paymentIntentId: null, dashboardUrl: null };
    assert.equal(subjectOf(fresh), 'Top-up `tu_1`: \\$25.00, checkout, for `cns_1`.');
  });
});
