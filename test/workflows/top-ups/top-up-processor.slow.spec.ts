/** A processor that is slow, fails, sends Retry-After, or is down: the workflow of a top-up ends correctly. */
import assert from 'node:assert/strict';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

describe('a top-up and its processor', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      ...QUICK_RETRIES,
      STRIPE_TIMEOUT_MS: '4000',
    });
    await harness.startWorker();
  });

  after(async () => {
    await harness?.close();
  });

  it('respects the processor’s Retry-After', async () => {
    const consumer = await harness.newConsumer();
    const retryAfter = { kind: 'error', status: 429, headers: { 'retry-after': '3' } };
    await harness.control('faults', { method: 'POST', path: '/v1/checkout', ...retryAfter });
    const startedAtMs = Date.now();
    const topUp = await harness.checkout(consumer, 25);
    assert.ok(Date.now() - startedAtMs >= 3_000);
    assert.match(String(topUp.sessionUrl), /^http/);
  });

  it('respects it even when it has used up its attempts and is nudged', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    const retryAfter = { kind: 'error', status: 429, headers: { 'retry-after': '1' }, times: 4 };
    await harness.control('faults', { method: 'GET', path: '/v1/checkout', ...retryAfter });
    const last = { ...retryAfter, headers: { 'retry-after': '4' }, times: 1_000 };
    await harness.control('faults', { method: 'GET', path: '/v1/checkout', ...last });
    const startedAtMs = Date.now();
    await reportPayment(harness.temporal, topUp);
    await until(() => harness.stuck(topUp));
    await harness.forgetFaults();
    await reportPayment(harness.temporal, topUp);
    await harness.workflow(topUp.id).executeUpdate('retry');
    await until(async () => (await progressOf(topUp)).stuck === null);
    // Four times one second, then four.
    assert.ok(Date.now() - startedAtMs >= 8_000);
    await harness.workflow(topUp.id).executeUpdate('cancel');
  });

  it('is stuck at once with the status and id of the request, and can be canceled, when Retry-After is a day', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    const headers = { 'retry-after': '86400', 'request-id': 'req_busy' };
    const fault = { method: 'GET', path: '/v1/checkout', kind: 'error', status: 429, headers };
    await harness.control('faults', fault);
    await reportPayment(harness.temporal, topUp);
    const stuck = await until(() => harness.stuck(topUp));
    assert.match(stuck.message, /\(StripeRateLimitError, status 429, request req_busy\)/);
    const after = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(after.status, 'expired');
  });

  it('opens and credits though the processor is slow, fails and drops the connection in turn', async () => {
    const consumer = await harness.newConsumer();
    const faults = [
      { method: 'POST', path: '/v1/customers', kind: 'error', status: 429 },
      { method: 'POST', path: '/v1/checkout', kind: 'do_then_error', status: 500 },
      { method: 'POST', path: '/v1/checkout', kind: 'do_then_drop' },
      { method: 'GET', path: '/v1/checkout', kind: 'delay', ms: 2_000 },
      { method: 'GET', path: '/v1/checkout', kind: 'error', status: 500, times: 2 },
      { method: 'GET', path: '/v1/checkout', kind: 'drop' },
    ];
    for (const fault of faults) await harness.control('faults', fault);
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await harness.paymentsOf(topUp)).length, 1);
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('takes the money once though the answer came too late, and was retried', async () => {
    const consumer = await harness.newConsumer();
    // Longer than the timeout: done, but without an answer.
    const slow = { method: 'POST', path: '/v1/payment_intents/', kind: 'delay', ms: 4_500 };
    await harness.control('faults', slow);
    const result = await harness.request(consumer, 'direct', 20);
    assert.equal(result.kind, 'pending');
    assert.ok('topUp' in result);
    await until(async () => (await harness.topUp(result.topUp.id)).status === 'completed');
    assert.equal((await harness.paymentsOf(result.topUp)).length, 1);
    assert.equal((await harness.books(consumer)).credited, 20_000_000);
  });

  it('shows an outage of the processor, and continues by itself after it', async () => {
    const consumer = await harness.newConsumer();
    const open = await harness.checkout(consumer, 25);
    await harness.control('faults', { path: '/v1/', kind: 'drop', times: 10_000 });
    const direct = await harness.request(consumer, 'direct', 20);
    const checkout = await harness.request(await harness.newConsumer(), 'checkout', 30);
    assert.deepEqual([direct.kind, checkout.kind], ['pending', 'pending']);
    assert.ok('topUp' in direct && 'topUp' in checkout);
    for (const topUp of [direct.topUp, checkout.topUp]) {
      await until(() => harness.stuck(topUp));
    }
    await harness.pay(open.sessionUrl);
    await harness.forgetFaults();
    await harness.statusBecomes(open, 'completed');
    await until(async () => (await harness.topUp(direct.topUp.id)).status === 'completed');
    const url = await until(async () => (await harness.topUp(checkout.topUp.id)).sessionUrl);
    await harness.pay(url);
    await harness.statusBecomes(checkout.topUp, 'completed');
    assert.equal((await harness.paymentsOf(direct.topUp)).length, 1);
  });

  const progressOf = (topUp: Pick<TopUp, 'id'>) =>
    harness.workflow(topUp.id).query<TopUpProgress>('status');
});
