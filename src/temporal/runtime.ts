/** Temporal's native runtime. Its log goes to ours, and it does not handle signals. */
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

let runtimeInstalled = false;

/** Installs it once per process. The process handles signals itself, because it shuts down in its own order. */
export function installRuntime(log: Logger): void {
  if (runtimeInstalled) return;
  runtimeInstalled = true;
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      log[level === 'ERROR' ? 'error' : 'warn'](meta ?? {}, message);
    }),
    telemetryOptions: { logging: { filter: 'WARN', forward: {} } },
  });
}
