/** `farebox worker`: runs one worker process, which runs workflows and delivers payment reports to them. */
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { createLog } from '../processes/log.ts';
import { traceIds } from '../tracing/tracing.ts';
import { exitWithin } from './exit-within.ts';
import { untilStopped } from './until-stopped.ts';

/** In addition to the grace of calls to agents. A step waits for a silent Postgres for up to 12 s. */
export const WORKER_STOP_MS_MAX = 13_000;

export function register(command: Command): void {
  command.action(async () => {
    const config = readConfig(process.env);
    const log = createLog('worker', config.logLevel, { mixin: config.traces && traceIds });
    const stopped = untilStopped();
    const starting = new AbortController();
    void stopped.then(() => starting.abort());
    // After the settings, so that wrong ones are refused at once: this loads two thousand files.
    const { runWorker } = await import('../processes/worker.ts');
    const worker = await runWorker(config, log, starting.signal).catch((error: unknown) => {
      if (starting.signal.aborted) return undefined;
      throw error;
    });
    if (!worker) process.exit();
    log.info('the worker is polling');
    process.send?.({ ready: true });
    try {
      await Promise.race([stopped, worker.ended]);
    } finally {
      exitWithin(config.agentGraceMs + WORKER_STOP_MS_MAX, log);
      await worker.stop();
    }
    // A connection whose other side is silent does not close, and would keep the process alive.
    process.exit();
  });
}
