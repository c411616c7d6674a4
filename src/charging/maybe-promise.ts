/**
 * A value that is usually in memory and sometimes has to be fetched. The charge path does not await values in memory:
 * promises for them would be a fifth of the garbage that a charge creates (decision 0014).
 */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `use` with the value: at once if it is in memory, otherwise once it arrives. */
export function whenKnown<T, R>(
  value: MaybePromise<T>,
  use: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
