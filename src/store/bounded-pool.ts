/**
 * A pool whose queue is bounded in length and in time. Slonik's own queue has no bounds: while all connections are
 * busy, callers would wait without an answer.
 */
import type { DatabasePool } from 'slonik';
import { giveUpAfter } from '../give-up-after.ts';

export interface PoolBounds {
  readonly maxPoolSize: number;
  /** How long a caller may wait for a connection. */
  readonly waitMsMax: number;
  /** How many callers may wait at a time. */
  readonly waitingMax: number;
}

/** All connections are busy, and nothing was sent to Postgres. */
export class PoolBusyError extends Error {
  override readonly name = 'PoolBusyError';
}

const TAKES_A_CONNECTION = new Set<PropertyKey>([
  'any',
  'anyFirst',
  'connect',
  'exists',
  'many',
  'manyFirst',
  'maybeOne',
  'maybeOneFirst',
  'one',
  'oneFirst',
  'query',
  'transaction',
]);

export function boundWaiting(pool: DatabasePool, bounds: PoolBounds): DatabasePool {
  let free = bounds.maxPoolSize;
  const waiting = new Set<() => void>();

  const acquire = async () => {
    if (free > 0) {
      free -= 1;
      return;
    }
    if (waiting.size >= bounds.waitingMax) throw new PoolBusyError('too many callers are waiting');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stopWaiting = giveUpAfter(bounds.waitMsMax, () => {
      waiting.delete(resolve);
      reject(new PoolBusyError(`no connection became free within ${bounds.waitMsMax} ms`));
    });
    waiting.add(resolve);
    await promise.finally(stopWaiting);
  };

  const release = () => {
    const [next] = waiting;
    if (!next) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next();
  };

  return new Proxy(pool, {
    get: (target, name, receiver) => {
      const method: unknown = Reflect.get(target, name, receiver);
      if (!TAKES_A_CONNECTION.has(name) || typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        await acquire();
        try {
          return await Reflect.apply(method, target, args);
        } finally {
          release();
        }
      };
    },
  });
}
