/**
 * The whole suite. Every request and answer is compared with Stripe's description as well, and the last test
 * says how.
 */
import assert from 'node:assert/strict';
import type { Target } from '../target.ts';
import { describeCustomers } from './customers.ts';
import { describeEvents } from './events.ts';
import { describePayments } from './payments.ts';
import { describeProtocol } from './protocol.ts';
import { describeReversals } from './reversals.ts';
import { describeTax } from './tax.ts';
import { describeSessions } from './sessions.ts';

export function describeConformance(get: () => Target): void {
  describeCustomers(get);
  describeSessions(get);
  describeTax(get);
  describePayments(get);
  describeReversals(get);
  describeProtocol(get);
  describeEvents(get);

  describe('every request and answer', () => {
    it('has the form that Stripe declares for this API version', () => {
      assert.deepEqual([...new Set(get().differences)], []);
    });
  });
}
