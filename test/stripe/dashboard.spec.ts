/** Links for operators lead to the right mode of Stripe's dashboard, and are missing without Stripe. */
import assert from 'node:assert/strict';
import { dashboardUrlOf } from '../../src/stripe/dashboard.ts';

const url = (secretKey: string, apiBase?: URL) =>
  dashboardUrlOf({
    secretKey,
    apiBase,
    webhookSecrets: [],
    timeoutMs: 10_000,
    stepsPerSecond: 10,
    tax: undefined,
  });

describe('the dashboard of the processor', () => {
  it('matches the mode of the key', () => {
    assert.equal(url('sk_test_1'), 'https://dashboard.stripe.com/test');
    assert.equal(url('rk_live_1'), 'https://dashboard.stripe.com');
  });

  it('is missing when another server replaces Stripe', () => {
    assert.equal(url('sk_test_1', new URL('http://127.0.0.1:1')), null);
  });
});
