/**
 * Work on the many members of a batch, in slices of a quarter of a millisecond. The event loop serves other requests
 * between two slices, so a single charge does not wait until a thousand members are done.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MaybePromise } from './maybe-promise.ts';

/** The overhead of a turn of the event loop is some hundredths of this. */
const SLICE_MS = 0.25;

/** Settles when the slice that was granted last may begin. */
let granted: Promise<void> = Promise.resolve();

/**
 * As `items.map(work)`, in slices. The first slice begins at once, so a short list is mapped without a pause.
 * Each has at least one item, even after the process itself was paused.
 */
export async function mapInSlices<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => R,
): Promise<R[]> {
  const results: R[] = [];
  let endsAt = performance.now() + SLICE_MS;
  let index = 0;
  for (const item of items) {
    if (index > 0 && performance.now() >= endsAt) {
      await nextSlice();
      endsAt = performance.now() + SLICE_MS;
    }
    results.push(work(item, index));
    index += 1;
  }
  return results;
}

/** As `Promise.allSettled(items.map(work))`, in slices. A result that is known at once needs no promise. */
export async function settleInSlices<T, R>(
  items: readonly T[],
  work: (item: T) => MaybePromise<R>,
): Promise<PromiseSettledResult<R>[]> {
  const results = await mapInSlices(items, (item) => settle(work, item));
  if (results.every(isKnown)) return results;
  return Promise.all(results.map((result) => Promise.resolve(result)));
}

function isKnown<R>(result: MaybePromise<R>): result is R {
  return !(result instanceof Promise);
}

/** A promise is handled at once: it may reject before the last slice has begun. */
function settle<T, R>(
  work: (item: T) => MaybePromise<R>,
  item: T,
): MaybePromise<PromiseSettledResult<R>> {
  try {
    const result = work(item);
    return result instanceof Promise ? result.then(fulfilled, rejected) : fulfilled(result);
  } catch (error) {
    return rejected(error);
  }
}

/** The result. Throws the reason of a rejection, and an error for a result that is missing. */
export function valueOf<R>(settled: PromiseSettledResult<R> | undefined): R {
  if (!settled) throw new Error('a member of a batch has no result');
  if (settled.status === 'rejected') throw settled.reason;
  return settled.value;
}

/** One slice in each turn of the event loop, whichever batch it belongs to: batches take turns. */
function nextSlice(): Promise<void> {
  granted = granted.then(() => nextTurn());
  return granted;
}

function fulfilled<R>(value: R): PromiseFulfilledResult<R> {
  return { status: 'fulfilled', value };
}

function rejected(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason };
}
