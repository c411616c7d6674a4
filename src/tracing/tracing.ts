/**
 * Traces (OpenTelemetry), off by default. A process without traces has no Tracing object, and installs no
 * hooks. Attributes hold our own words, ids and numbers: never keys, texts of callers, or values of
 * statements.
 */
import {
  context,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span,
  type SpanOptions,
  type TextMapPropagator,
  type Tracer,
} from '@opentelemetry/api';

export type { Context, Span };
export { SpanKind } from '@opentelemetry/api';

/** The header in which a trace goes from one process to another: `traceparent`. */
export type Carrier = Readonly<Record<string, string>>;

interface Parts {
  readonly tracer: Tracer;
  readonly propagator: TextMapPropagator;
  readonly stop: () => Promise<void>;
}

export class Tracing {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Runs the work in a span, which is the current one meanwhile and ends with it. `parent` is the current span if not
   * given. An error marks the span with its code or class; its message may quote what a caller sent.
   */
  inSpan<T>(
    name: string,
    { parent = context.active(), ...options }: SpanOptions & { readonly parent?: Context },
    work: (span: Span) => Promise<T>,
  ): Promise<T> {
    const span = this.#parts.tracer.startSpan(name, options, parent);
    return context.with(trace.setSpan(parent, span), async () => {
      try {
        return await work(span);
      } catch (error) {
        markFailed(span, errorTypeOf(error));
        throw error;
      } finally {
        span.end();
      }
    });
  }

  /** A span that somebody else ends; undefined outside of a recorded trace. */
  startChild(name: string, options: SpanOptions): Span | undefined {
    const parent = context.active();
    return isRecorded(parent) ? this.#parts.tracer.startSpan(name, options, parent) : undefined;
  }

  /** The current trace, to be handed on. Empty outside of a trace. */
  carrier(): Carrier {
    const carrier: Record<string, string> = {};
    this.#parts.propagator.inject(context.active(), carrier, {
      set: (into: Record<string, string>, name, value) => void (into[name] = value),
    });
    return carrier;
  }

  /**
   * The trace that a request brought. Without a valid one, a new trace begins. `tracestate` is a text of the
   * caller, so it is dropped, as W3C Trace Context allows.
   */
  broughtBy(carrier: Readonly<Record<string, string | string[] | undefined>>): Context {
    return this.#parts.propagator.extract(ROOT_CONTEXT, carrier, {
      get: (from, name) => (name === 'traceparent' ? from[name] : undefined),
      keys: () => ['traceparent'],
    });
  }

  /** Sends what is left, or drops it after three seconds. */
  stop(): Promise<void> {
    return this.#parts.stop();
  }
}

export function currentContext(): Context {
  return context.active();
}

export function spanOf(of: Context): Span | undefined {
  return trace.getSpan(of);
}

export function isRecorded(of: Context): boolean {
  const found = trace.getSpanContext(of);
  return found !== undefined && (found.traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** Members for the lines of the log: none outside of a trace. */
export function traceIds(): { readonly traceId?: string; readonly spanId?: string } {
  const found = trace.getSpanContext(context.active());
  return found ? { traceId: found.traceId, spanId: found.spanId } : {};
}

export function markFailed(span: Span, errorType: string): void {
  span.setAttribute('error.type', errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Such as `ECONNRESET`, the SQLSTATE `23505`, or the class of the error. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    if ('code' in each && typeof each.code === 'string' && /^\w{1,40}$/.test(each.code)) {
      return each.code;
    }
  }
  return error.name;
}
