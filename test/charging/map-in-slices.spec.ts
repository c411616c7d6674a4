/** A long list is worked on in slices, between which the event loop serves others. */
import assert from 'node:assert/strict';
import { mapInSlices, settleInSlices } from '../../src/charging/map-in-slices.ts';

/** Longer than a slice, so that each item is one. */
function work<T>(item: T): T {
  const until = performance.now() + 1.5;
  while (performance.now() < until);
  return item;
}

/** The turns of the event loop until `ended`. */
async function turnsUntil(ended: Promise<unknown>): Promise<number> {
  let turns = 0;
  const turn = () => {
    turns += 1;
    immediate = setImmediate(turn);
  };
  let immediate = setImmediate(turn);
  await ended;
  clearImmediate(immediate);
  return turns;
}

describe('work in slices', () => {
  const items = Array.from({ length: 10 }, (_, index) => index);

  it('lets the event loop turn between two slices', async () => {
    assert.ok((await turnsUntil(mapInSlices(items, work))) >= items.length - 1);
  });

  it('returns the results in the order of the items', async () => {
    assert.deepEqual(await mapInSlices(items, work), items);
  });

  it('works on a short list at once', () => {
    let done = 0;
    void mapInSlices([1], () => (done += 1));
    assert.equal(done, 1);
  });

  it('gives each turn of the event loop to one batch, and the batches their slices in turn', async () => {
    const order: string[] = [];
    const note = (batch: string) => (item: number) => order.push(`${batch}${work(item)}`);
    const both = Promise.all(['a', 'b'].map((batch) => mapInSlices(items, note(batch))));
    // The first slices of both begin at once.
    assert.ok((await turnsUntil(both)) >= 2 * (items.length - 1));
    assert.deepEqual(
      order,
      items.flatMap((item) => [`a${item}`, `b${item}`]),
    );
  });

  it('handles a rejection at once, and settles all', async () => {
    const settled = await settleInSlices(items, async (item) => {
      work(item);
      if (item === 0) throw new Error('refused');
      return item;
    });
    assert.deepEqual(
      settled.map(({ status }) => status),
      items.map((item) => (item === 0 ? 'rejected' : 'fulfilled')),
    );
  });

  it('rejects when the work throws', async () => {
    const broken = mapInSlices(items, () => {
      throw new Error('broken');
    });
    await assert.rejects(broken, { message: 'broken' });
  });
});
