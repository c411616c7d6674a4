/** A limit for the shutdown of a process. */
import type { Logger } from 'pino';

/**
 * Exits with 1 if the process is still there after `limitMs`: something does not stop. Shorter than its
 * supervisor waits before it kills the process, which would leave no line in the log.
 */
export function exitWithin(limitMs: number, log: Logger): void {
  setTimeout(() => {
    log.error({ limitMs }, 'could not stop in time');
    process.exit(1);
  }, limitMs).unref();
}
