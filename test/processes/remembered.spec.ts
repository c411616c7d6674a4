/** What is loaded at its first use, and what happens when that fails. */
import assert from 'node:assert/strict';
import { remembered } from '../../src/remembered.ts';

describe('remembered work', () => {
  it('is done once, also for callers at the same time', async () => {
    let times = 0;
    const get = remembered(async () => (times += 1));
    assert.deepEqual(await Promise.all([get(), get()]), [1, 1]);
    assert.equal(await get(), 1);
  });

  it('is done again after it failed', async () => {
    let times = 0;
    const get = remembered(async () => {
      times += 1;
      if (times === 1) throw new Error('not now');
      return times;
    });
    await assert.rejects(get(), /not now/);
    assert.equal(await get(), 2);
    assert.equal(await get(), 2);
  });
});
