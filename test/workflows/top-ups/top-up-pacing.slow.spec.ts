/** Stripe's queue: calls are paced, and while Stripe hangs on many checkouts, payments are credited. */
import assert from 'node:assert/strict';
import type { TopUpResult } from '../../../src/top-ups/request-top-up.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const HANGING = 100;
const STEPS_PER_SECOND = 40;

describe('while Stripe hangs on many checkouts', () => {
  let harness: TopUpHarness;
  let checkout: TopUp;
  let requests: readonly Promise<TopUpResult>[];
  let allHangAfterMs: number;

  before(async () => {
    harness = await openTopUpHarness({
      STRIPE_STEPS_PER_SECOND: String(STEPS_PER_SECOND),
      TOP_UP_ANSWER_MS: '100',
    });
    await harness.startWorker();
    const consumer = await harness.newConsumer();
    checkout = await harness.checkout(consumer, 5);
    const times = 5 * HANGING;
    const path = '/v1/checkout/sessions';
    await harness.control('faults', { method: 'POST', path, kind: 'delay', ms: 60_000, times });
    const consumers = await Promise.all(Array.from({ length: 10 }, () => harness.newConsumer()));
    const startMs = performance.now();
    requests = Array.from({ length: HANGING }, (_, n) =>
      harness.request(consumers[n % 10] as Consumer, 'checkout', 5),
    );
    await until(async () => times - ((await harness.faults())[0]?.times ?? 0) >= HANGING);
    allHangAfterMs = performance.now() - startMs;
  });
  after(async () => {
    await Promise.all(requests ?? []);
    await harness?.close();
  });

  it('calls to it start no faster than the setting allows', () => {
    // Temporal lets the steps of the first second start at once.
    const earliestMs = (HANGING / STEPS_PER_SECOND - 1) * 1_000;
    assert.ok(allHangAfterMs >= earliestMs, `${allHangAfterMs} ms`);
  });

  it('a payment is credited', async () => {
    await harness.pay(checkout.sessionUrl);
    await harness.statusBecomes(checkout, 'completed');
  });
});
