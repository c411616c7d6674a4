/** Temporal's native part, of which there is one in a process: its log goes to ours, its signals nowhere. */
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

let runtimeInstalled = false;

/** One per process. Signals are for the process to handle, which ends things in an order of its own. */
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
