/** `farebox api`: runs one API process. */
import type { Command } from 'commander';
import { readApiConfig } from '../config.ts';
import { createLog } from '../processes/log.ts';
import { traceIds } from '../tracing/tracing.ts';
import { exitWithin } from './exit-within.ts';
import { untilStopped } from './until-stopped.ts';

/** Requests in flight get 5 s. docker-compose.yml waits 15 s. */
export const API_STOP_MS_MAX = 12_000;

export function register(command: Command): void {
  command.action(async () => {
    const config = readApiConfig(process.env);
    const log = createLog('api', config.logLevel, { mixin: config.traces && traceIds });
    const stopped = untilStopped();
    // After the settings, so that wrong ones are refused at once: this loads two thousand files.
    const { runApi } = await import('../processes/api.ts');
    // As process 1 of a container without an init, it is not ended by a signal that nobody listens to.
    const api = await Promise.race([runApi(config, log), stopped]);
    if (!api) process.exit();
    log.info({ port: api.port }, 'the API is listening');
    process.send?.({ ready: true, port: api.port });
    await stopped;
    exitWithin(API_STOP_MS_MAX, log);
    await api.stop();
    // A connection whose other side is silent does not close, and would keep the process alive.
    process.exit();
  });
}
