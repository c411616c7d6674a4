/**
 * How a process starts while Postgres restarts or its network resets connections: it repeats the step that failed, and
 * gives up after half a minute without one that succeeds, so that a wrong address does not look like a
 * process that is about to be ready.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isDatabaseAway } from '../store/failures.ts';

const PATIENCE_MS = 30_000;
const RETRY_MS = 250;

/** Repeats a step, which must be safe to repeat, while Postgres is away. Rejects at once for any other failure. */
export type Patiently = <T>(step: () => Promise<T>) => Promise<T>;

/** No step succeeded for as long as Postgres may be away. */
export class StartTimeoutError extends Error {
  override readonly name = 'StartTimeoutError';

  constructor(waitedMs: number, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Gave up after ${Math.round(waitedMs / 1_000)} s without Postgres: ${reason}`, { cause });
  }
}

/** Waits for `patienceMs` from the beginning of the start, and then from the last step that succeeded. */
export function startPatience(
  log: Logger,
  { patienceMs = PATIENCE_MS, signal }: { patienceMs?: number; signal?: AbortSignal } = {},
): Patiently {
  let succeededAt = performance.now();
  return async (step) => {
    for (;;) {
      try {
        const result = await step();
        succeededAt = performance.now();
        return result;
      } catch (error) {
        signal?.throwIfAborted();
        if (!isDatabaseAway(error)) throw error;
        const waitedMs = performance.now() - succeededAt;
        if (waitedMs > patienceMs) throw new StartTimeoutError(waitedMs, error);
        log.warn({ err: error }, 'waiting for Postgres');
        await delay(RETRY_MS, undefined, { signal });
      }
    }
  };
}
