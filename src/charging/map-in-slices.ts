/**
 * Work on the many members of a batch, in slices of a quarter of a millisecond. The event loop serves other requests
 * between two slices, so a single charge does not wait until a thousand members are done.
 */

/** The overhead of a turn of the event loop is some hundredths of this. */
const SLICE_MS = 0.25;

/** Settles when the slice that was granted last may begin. */
let granted: Promise<void> = Promise.resolve();

/**
 * As `items.map(work)`, in slices. The first slice begins at once, so a short list is mapped without a pause.
 */
export async function mapInSlices<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => R,
): Promise<R[]> {
  const results: R[] = [];
  let endsAt = performance.now() + SLICE_MS;
  for (const [index, item] of items.entries()) {
    if (performance.now() >= endsAt) {
      await nextSlice();
      endsAt = performance.now() + SLICE_MS;
    }
    results.push(work(item, index));
  }
  return results;
}

/** As `Promise.allSettled(items.map(work))`, in slices. */
export async function settleInSlices<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<PromiseSettledResult<R>[]> {
  // Each promise is handled at once: it may reject before the last slice has begun.
  return Promise.all(await mapInSlices(items, (item) => work(item).then(fulfilled, rejected)));
}

/** One slice in each turn of the event loop, whichever batch it belongs to: batches take turns. */
export function nextSlice(): Promise<void> {
  granted = granted.then(nextTurn);
  return granted;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function fulfilled<R>(value: R): PromiseFulfilledResult<R> {
  return { status: 'fulfilled', value };
}

function rejected(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason };
}
