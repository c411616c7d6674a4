/** The paces of steps that call Stripe and of reconciliation: how fast, and how many at a time. */
import assert from 'node:assert/strict';
import { eachInTurn, Pace, stripeQueueLimits } from '../../src/stripe/pace.ts';

/** Fast enough to need no waiting. */
const UNPACED = () => new Pace(1_000_000);
const ITEMS = [0, 1, 2, 3, 4, 5, 6, 7];

describe('comparisons with the processor', () => {
  it('start no faster than the pace, in one batch and the next', async () => {
    const pace = new Pace(100);
    const beganMs = performance.now();
    const startedMs: number[] = [];
    const note = async () => void startedMs.push(performance.now());
    await eachInTurn(ITEMS, { pace, atOnce: 4 }, note);
    await eachInTurn(ITEMS, { pace, atOnce: 4 }, note);
    assert.equal(startedMs.length, 16);
    const tookMs = Math.max(...startedMs) - beganMs;
    // 15 intervals; a timer may be early by a millisecond.
    assert.ok(tookMs >= 149, `${tookMs} ms`);
  });

  it('run several at a time, and no more than that', async () => {
    let running = 0;
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const done = await eachInTurn(ITEMS, { pace: UNPACED(), atOnce: 3 }, async (item) => {
      running += 1;
      most = Math.max(most, running);
      if (running === 3) gate.resolve();
      await gate.promise;
      running -= 1;
      return item;
    });
    assert.equal(most, 3);
    assert.deepEqual(new Set(done), new Set(ITEMS));
  });

  it('start no others after one has failed, and leave none running', async () => {
    const started: number[] = [];
    const ended: number[] = [];
    const gate = Promise.withResolvers<void>();
    const all = eachInTurn(ITEMS, { pace: UNPACED(), atOnce: 2 }, async (item) => {
      started.push(item);
      if (item === 0) {
        await gate.promise;
        ended.push(item);
        return;
      }
      setImmediate(() => gate.resolve());
      throw new Error('too many requests');
    });
    await assert.rejects(all, /too many requests/);
    assert.deepEqual(started, [0, 1]);
    assert.deepEqual(ended, [0]);
  });
});

describe('the queue of steps that call Stripe', () => {
  it('has a slot for each step that may start while others hang until they time out', () => {
    // The timeout of these steps (workflows/processor-steps.ts).
    const stepSeconds = 15;
    assert.deepEqual(stripeQueueLimits(40), {
      maxTaskQueueActivitiesPerSecond: 40,
      maxConcurrentActivityTaskExecutions: 40 * stepSeconds,
    });
  });
});
