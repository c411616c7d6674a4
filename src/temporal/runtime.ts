/** Temporal's native runtime. Its log goes to ours, and it does not handle signals. */
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

let current: Logger | undefined;

/**
 * Installs it once per process, and again only changes its log. The process handles signals itself, because it shuts
 * down in its own order.
 */
export function installRuntime(log: Logger): void {
  const isInstalled = current !== undefined;
  current = log;
  if (isInstalled) return;
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      current?.[level === 'ERROR' ? 'error' : 'warn'](meta ?? {}, message);
    }),
    telemetryOptions: { logging: { filter: 'WARN', forward: {} } },
  });
}
