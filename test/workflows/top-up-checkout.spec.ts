/** Specification section 4.1, rules 2 and 3: a checkout, paid, is credited exactly once. */
import assert from 'node:assert/strict';
import type { Server } from '../support/stack.ts';
import { until } from '../support/stack.ts';
import { openDesk, type TopUpDesk } from './top-up-desk.ts';

describe('a top-up through the hosted checkout', () => {
  let desk: TopUpDesk;
  let worker: Server;

  before(async () => {
    desk = await openDesk({ FIRST_ASK_MS: '3600000' });
    worker = await desk.startWorker();
  });

  after(async () => {
    await worker.stop();
    await desk.close();
  });

  it('credits the balance when the processor reports the payment', async () => {
    const consumer = await desk.newConsumer();
    const result = await desk.request(consumer, 'checkout', 25);
    assert.equal(result.kind, 'pending');
    const { topUp } = result as Extract<typeof result, { topUp: unknown }>;
    assert.equal((await desk.books(consumer)).credited, 0);

    await desk.pay(topUp.sessionUrl);
    await until(async () => (await desk.topUp(topUp.id)).status === 'completed');

    assert.deepEqual(await desk.books(consumer), {
      credited: 25_000_000,
      movements: 1,
      lots: 1,
      lotsMicros: 25_000_000,
    });
  });
});
