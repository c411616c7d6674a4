/**
 * The composition root of the API: turns configuration into resources and a listening server, and closes them in
 * reverse order. The worker's is worker.ts.
 */
import { Registry } from '@prometheus-io/client';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { createApp } from '../http/app.ts';
import { canCharge } from '../http/readiness.ts';
import { listen } from '../http/server.ts';
import { registerApi } from '../metrics/api-metrics.ts';
import { observeFlushes } from '../metrics/flush-metrics.ts';
import { serveMetrics } from '../metrics/serve-metrics.ts';
import { ensureChargePartitions } from '../store/charges/partitions.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { keepConnected } from '../temporal/keep-connected.ts';
import { checkNamespace } from '../temporal/namespace.ts';
import { startTracing } from '../tracing/start-tracing.ts';
import { closePools, openApiPools } from './api-pools.ts';
import { openServices } from './api-services.ts';
import { checkStart } from './check-start.ts';
import { listeningAt } from './listening.ts';
import { startPatience } from './patience.ts';

export interface Running {
  readonly port: number;
  stop(): Promise<void>;
}

export async function runApi(config: Config, log: Logger): Promise<Running> {
  const patiently = startPatience(log);
  await patiently(() => checkStart(config, log));
  const { putOff } = await patiently(() =>
    ensureChargePartitions(config.databaseUrl, 'now', 'leave'),
  );
  if (putOff.length > 0) log.warn({ putOff }, 'the workers will create these partitions');
  // An open resource would keep the process alive without serving, and no supervisor would restart it.
  await using opened = new AsyncDisposableStack();
  const tracing = await startTracing(config.traces, 'farebox-api', log);
  opened.defer(() => tracing?.stop());
  const { pools, clock, laneCount } = await openApiPools(config, log, patiently, tracing);
  opened.defer(() => closePools(pools));
  opened.defer(() => clock.stop());
  const temporal = createTemporalClient(config.temporal, tracing);
  opened.defer(() => temporal.close());
  const stopping = new AbortController();
  opened.defer(() => stopping.abort());

  const { host, metricsPort } = config;
  const registry = metricsPort === undefined ? undefined : new Registry();
  const onFlush = registry && observeFlushes(registry);
  const api = await openServices({
    config,
    log,
    pools,
    clock,
    laneCount,
    tracing,
    temporal,
    onFlush,
    opened,
  });
  if (registry && metricsPort !== undefined) {
    const { database: reads, ...others } = pools;
    registerApi(registry, {
      responses: api.responses,
      waitingCharges: () => api.batcher.waiting + api.entries.waiting,
      isReady: async () => canCharge(await api.readiness.check()),
      pools: { ...others, reads, ...api.console.pools },
    });
    const metrics = await listeningAt(
      { host, setting: 'METRICS_PORT', port: metricsPort },
      serveMetrics({ host, port: metricsPort, log }, registry),
    );
    opened.defer(() => metrics.close());
  }
  const server = await listeningAt(
    { host, setting: 'PORT', port: config.port },
    listen(createApp(api), config, config.baseUrl, api.responses),
  );
  opened.defer(() => server.close());
  opened.defer(() => {
    // Requests that wait for a decision are answered with the present state. Their senders ask again elsewhere.
    api.approvals.stop();
    api.earnings.stop();
  });
  void keepConnected(temporal, log, stopping.signal);
  // Charges need no Temporal, so this refuses no start.
  void checkNamespace(temporal.client, config.temporal).catch((err: unknown) => {
    if (!stopping.signal.aborted) log.warn({ err }, 'no workflow can be started at Temporal');
  });
  const running = opened.move();
  return { port: server.port, stop: () => running.disposeAsync() };
}
