/**
 * OpenTelemetry's SDK, loaded only by a process that makes traces: spans go in batches to a receiver of OTLP
 * over HTTP, as JSON. Its packages read OTEL_EXPORTER_OTLP_... and OTEL_RESOURCE_ATTRIBUTES themselves. While
 * the receiver is away, spans beyond 2048 are dropped.
 */
import { context, diag, DiagLogLevel } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { TracesConfig } from '../config.ts';
import { Tracing } from './tracing.ts';

/** A flush links every request of its batch. */
const LINKS_MAX = 256;
/** Statements are parametrized, and the longest has 3,000 characters. */
const TEXT_LENGTH_MAX = 2_000;
/** For one send, with its repeats. A process that stops waits for the last send. */
const TIMEOUT_MS = 3_000;
/** People who debug look at a trace right after the request. */
const SEND_EVERY_MS = 1_000;

const ignore = () => {};

/** One line a minute while the receiver is away: the sending fails every second. */
const WARN_EVERY_MS = 60_000;
const REASON_LENGTH_MAX = 500;

function warnerOf(log: Logger): (reason: string) => void {
  let nextAtMs = 0;
  return (reason) => {
    if (performance.now() < nextAtMs) return;
    nextAtMs = performance.now() + WARN_EVERY_MS;
    log.warn({ reason: reason.slice(0, REASON_LENGTH_MAX) }, 'traces could not be sent');
  };
}

export function startSdk(config: TracesConfig, serviceName: string, log: Logger): Tracing {
  const report = warnerOf(log);
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  // For the whole process. The provider is ours alone: other packages would write their own spans, with values.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const provider = new TracerProvider({
    sampler: samplerOf(config),
    resource: resourceFromAttributes({ 'service.name': serviceName }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanLimits: { linkCountLimit: LINKS_MAX, attributeValueLengthLimit: TEXT_LENGTH_MAX },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ timeoutMillis: TIMEOUT_MS }),
        scheduledDelayMillis: SEND_EVERY_MS,
      }),
    ],
  });
  return new Tracing({
    tracer: provider.getTracer('farebox'),
    propagator: new W3CTraceContextPropagator(),
    stop: () => provider.shutdown().catch(() => {}),
  });
}

function samplerOf({ sampler, ratio }: TracesConfig): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}
