/** Semaphore: never more slots at once than it has, in order, and none lost to a caller that gave up. */
import assert from 'node:assert/strict';
import { Semaphore } from '../../src/invocations/semaphore.ts';

const LONG_MS = 60_000;

describe('semaphore', () => {
  it('gives out free slots at once, then each released slot to the next in line', async () => {
    const semaphore = new Semaphore(2);
    assert.deepEqual([await semaphore.acquire(0), await semaphore.acquire(0)], [true, true]);
    const came: string[] = [];
    const waiting = ['first', 'second', 'third'].map(async (name) => {
      if (await semaphore.acquire(LONG_MS)) came.push(name);
    });
    semaphore.release();
    await waiting[0];
    assert.deepEqual(came, ['first']);
    semaphore.release();
    semaphore.release();
    await Promise.all(waiting);
    assert.deepEqual(came, ['first', 'second', 'third']);
  });

  it('turns away a caller at its timeout and gives the slot to the next', async () => {
    const semaphore = new Semaphore(1);
    await semaphore.acquire(0);
    const impatient = semaphore.acquire(1);
    const patient = semaphore.acquire(LONG_MS);
    assert.equal(await impatient, false);
    semaphore.release();
    assert.equal(await patient, true);
  });

  it('frees a released slot when nobody waits', async () => {
    const semaphore = new Semaphore(1);
    await semaphore.acquire(0);
    semaphore.release();
    assert.equal(await semaphore.acquire(0), true);
    assert.equal(await semaphore.acquire(0), false);
  });

  it('never gives out more slots than it has', async () => {
    const semaphore = new Semaphore(3);
    let inside = 0;
    let insideMax = 0;
    const work = async () => {
      assert.ok(await semaphore.acquire(LONG_MS));
      insideMax = Math.max(insideMax, (inside += 1));
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      semaphore.release();
    };
    await Promise.all(Array.from({ length: 100 }, work));
    assert.deepEqual([inside, insideMax], [0, 3]);
  });
});
