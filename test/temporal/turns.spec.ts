/** Turns: never more at once than allowed, in order, and none is lost to a caller that gave up waiting. */
import assert from 'node:assert/strict';
import { Turns } from '../../src/temporal/turns.ts';

const LONG_MS = 60_000;

describe('turns', () => {
  it('are taken at once while there are any, and then in order as they are returned', async () => {
    const turns = new Turns(2);
    assert.deepEqual([await turns.take(0), await turns.take(0)], [true, true]);
    const came: string[] = [];
    const waiting = ['first', 'second', 'third'].map(async (name) => {
      if (await turns.take(LONG_MS)) came.push(name);
    });
    turns.giveBack();
    await waiting[0];
    assert.deepEqual(came, ['first']);
    turns.giveBack();
    turns.giveBack();
    await Promise.all(waiting);
    assert.deepEqual(came, ['first', 'second', 'third']);
  });

  it('are refused to a caller that would wait too long, and go to the next', async () => {
    const turns = new Turns(1);
    await turns.take(0);
    const impatient = turns.take(1);
    const patient = turns.take(LONG_MS);
    assert.equal(await impatient, false);
    turns.giveBack();
    assert.equal(await patient, true);
  });

  it('are returned when nobody waits', async () => {
    const turns = new Turns(1);
    await turns.take(0);
    turns.giveBack();
    assert.equal(await turns.take(0), true);
    assert.equal(await turns.take(0), false);
  });

  it('never exceed their number, under any traffic', async () => {
    const turns = new Turns(3);
    let inside = 0;
    let insideMax = 0;
    const work = async () => {
      assert.ok(await turns.take(LONG_MS));
      insideMax = Math.max(insideMax, (inside += 1));
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      turns.giveBack();
    };
    await Promise.all(Array.from({ length: 100 }, work));
    assert.deepEqual([inside, insideMax], [0, 3]);
  });
});
