/**
 * A value that is usually in memory and sometimes has to be fetched. The charge path does not await the
 * first kind: a promise for each of the values that are known already is a fifth of what a charge leaves to the
 * garbage collector (decision 0014).
 */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `use` with the value: at once when it is there, otherwise when it has arrived. */
export function whenKnown<T, R>(
  value: MaybePromise<T>,
  use: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
