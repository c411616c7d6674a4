/** The processor slow, failing, asking to be left alone, or gone: the workflow of a top-up ends right. */
import assert from 'node:assert/strict';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { until } from '../../support/stack.ts';
import { openDesk, type TopUpDesk } from '../../support/top-up-desk.ts';

describe('a top-up and its processor', () => {
  let desk: TopUpDesk;

  before(async () => {
    desk = await openDesk({ FIRST_ASK_MS: '3600000' });
    await desk.startWorker();
  });

  after(async () => {
    await desk?.close();
  });

  it('leaves the processor alone for as long as it asks', async () => {
    const consumer = await desk.newConsumer();
    const retryAfter = { kind: 'error', status: 429, headers: { 'retry-after': '3' } };
    await desk.control('faults', { method: 'POST', path: '/v1/checkout', ...retryAfter });
    const startedAtMs = Date.now();
    const topUp = await desk.checkout(consumer, 25);
    assert.ok(Date.now() - startedAtMs >= 3_000);
    assert.match(String(topUp.sessionUrl), /^http/);
  });

  it('leaves it alone even when it has used up its attempts and is nudged', async () => {
    const consumer = await desk.newConsumer();
    const topUp = await desk.checkout(consumer, 25);
    const retryAfter = { kind: 'error', status: 429, headers: { 'retry-after': '1' }, times: 4 };
    await desk.control('faults', { method: 'GET', path: '/v1/checkout', ...retryAfter });
    const last = { kind: 'error', status: 429, headers: { 'retry-after': '4' } };
    await desk.control('faults', { method: 'GET', path: '/v1/checkout', ...last });
    const startedAtMs = Date.now();
    await reportPayment(desk.temporal, topUp);
    await until(async () => (await progressOf(topUp)).stuck !== null);
    await reportPayment(desk.temporal, topUp);
    await desk.workflow(topUp.id).executeUpdate('retry');
    assert.equal((await progressOf(topUp)).stuck, null);
    // Four times one second, then four.
    assert.ok(Date.now() - startedAtMs >= 8_000);
    await desk.workflow(topUp.id).executeUpdate('cancel');
  });

  it('is stuck at once, and can be canceled, when the processor asks to be left alone for a day', async () => {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    const headers = { 'retry-after': '86400' };
    const fault = { method: 'GET', path: '/v1/checkout', kind: 'error', status: 429, headers };
    await desk.control('faults', fault);
    await reportPayment(desk.temporal, topUp);
    const stuck = await until(async () => (await progressOf(topUp)).stuck);
    assert.match(stuck.message, /\(StripeRateLimitError, status 429\)/);
    const after = await desk.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(after.status, 'expired');
  });

  it('opens and credits though the processor is slow, fails and is cut off, one after the other', async () => {
    const consumer = await desk.newConsumer();
    const faults = [
      { method: 'POST', path: '/v1/customers', kind: 'error', status: 429 },
      { method: 'POST', path: '/v1/checkout', kind: 'do_then_error', status: 500 },
      { method: 'POST', path: '/v1/checkout', kind: 'do_then_drop' },
      { method: 'GET', path: '/v1/checkout', kind: 'delay', ms: 2_000 },
      { method: 'GET', path: '/v1/checkout', kind: 'error', status: 500, times: 2 },
      { method: 'GET', path: '/v1/checkout', kind: 'drop' },
    ];
    for (const fault of faults) await desk.control('faults', fault);
    const topUp = await desk.checkout(consumer, 25);
    await desk.pay(topUp.sessionUrl);
    await desk.statusBecomes(topUp, 'completed');
    assert.equal((await desk.paymentsOf(topUp)).length, 1);
    assert.equal((await desk.books(consumer)).credited, 25_000_000);
  });

  it('takes the money once though the answer came too late, and again', async () => {
    const consumer = await desk.newConsumer();
    // Longer than we wait for an answer: done, and nobody was told.
    const slow = { method: 'POST', path: '/v1/payment_intents/', kind: 'delay', ms: 10_500 };
    await desk.control('faults', slow);
    const result = await desk.request(consumer, 'direct', 20);
    assert.equal(result.kind, 'pending');
    assert.ok('topUp' in result);
    await until(async () => (await desk.topUp(result.topUp.id)).status === 'completed');
    assert.equal((await desk.paymentsOf(result.topUp)).length, 1);
    assert.equal((await desk.books(consumer)).credited, 20_000_000);
  });

  it('shows that the processor is away, and goes on by itself when it is back', async () => {
    const consumer = await desk.newConsumer();
    const open = await desk.checkout(consumer, 25);
    await desk.control('faults', { path: '/v1/', kind: 'drop', times: 10_000 });
    const direct = await desk.request(consumer, 'direct', 20);
    const checkout = await desk.request(await desk.newConsumer(), 'checkout', 30);
    assert.deepEqual([direct.kind, checkout.kind], ['pending', 'pending']);
    assert.ok('topUp' in direct && 'topUp' in checkout);
    for (const topUp of [direct.topUp, checkout.topUp]) {
      await until(async () => (await progressOf(topUp)).stuck !== null);
    }
    await desk.pay(open.sessionUrl);
    await desk.forgetFaults();
    await desk.statusBecomes(open, 'completed');
    await until(async () => (await desk.topUp(direct.topUp.id)).status === 'completed');
    const url = await until(async () => (await desk.topUp(checkout.topUp.id)).sessionUrl);
    await desk.pay(url);
    await desk.statusBecomes(checkout.topUp, 'completed');
    assert.equal((await desk.paymentsOf(direct.topUp)).length, 1);
  });

  const progressOf = (topUp: Pick<TopUp, 'id'>) =>
    desk.workflow(topUp.id).query<TopUpProgress>('status');
});
