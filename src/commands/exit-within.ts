/** A limit for the shutdown of a process. */
import type { Logger } from 'pino';
import { giveUpAfter } from '../give-up-after.ts';

/**
 * Exits with 1 if the process is still there after `limitMs`: something does not stop. Shorter than its
 * supervisor waits before it kills the process, which would leave no line in the log. A process that stood still at the
 * end gets that time, too.
 */
export function exitWithin(limitMs: number, log: Logger): void {
  giveUpAfter(limitMs, () => {
    log.error({ limitMs }, 'could not stop in time');
    process.exit(1);
  });
}
