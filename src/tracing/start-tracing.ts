/** Starts the traces of a process that has them. OpenTelemetry's SDK is loaded only then. */
import type { Logger } from 'pino';
import type { TracesConfig } from '../config.ts';
import type { Tracing } from './tracing.ts';

/** Undefined when the process makes no traces. Nothing of OpenTelemetry's SDK is loaded then. */
export async function startTracing(
  config: TracesConfig | undefined,
  serviceName: 'farebox-api' | 'farebox-worker',
  log: Logger,
): Promise<Tracing | undefined> {
  if (!config) return undefined;
  const { startSdk } = await import('./sdk.ts');
  return startSdk(config, serviceName, log);
}
