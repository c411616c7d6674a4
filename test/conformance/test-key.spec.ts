/** The suite against Stripe never runs with a key that moves real money. */
import assert from 'node:assert/strict';
import { readTestKey } from './test-key.ts';

describe('the key of the conformance suite', () => {
  it('is one of test mode', () => {
    assert.equal(readTestKey({ STRIPE_TEST_KEY: 'sk_test_abc' }), 'sk_test_abc');
    assert.equal(readTestKey({ STRIPE_TEST_KEY: 'rk_test_abc' }), 'rk_test_abc');
    for (const key of [
      'sk_live_abc',
      'rk_live_abc',
      'pk_test_abc',
      'sk_test_',
      ' sk_test_abc',
      'x sk_test_abc',
    ]) {
      assert.throws(() => readTestKey({ STRIPE_TEST_KEY: key }), /must be a key of test mode/);
    }
    assert.throws(() => readTestKey({}), /Set STRIPE_TEST_KEY/);
  });
});
