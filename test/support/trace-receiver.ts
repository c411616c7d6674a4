/** A receiver of OTLP over HTTP on loopback, as a collector is: it keeps every span and every byte. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { text } from 'node:stream/consumers';
import { closeNow, listenOnLoopback } from './loopback.ts';

export interface ReceivedSpan {
  /** `service.name` of the process. */
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Ids of the linked spans. */
  readonly links: readonly string[];
  readonly isFailed: boolean;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Otlp {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly attributes: readonly Attribute[];
        readonly links?: readonly { readonly spanId: string }[];
        readonly status?: { readonly code?: number };
      }[];
    }[];
  }[];
}

const STATUS_ERROR = 2;

export type TraceReceiver = Awaited<ReturnType<typeof startTraceReceiver>>;

/** Without a status it takes requests and never answers, like a collector that hangs. */
export async function startTraceReceiver({
  status = 200,
}: { readonly status?: number | null } = {}) {
  const bodies: string[] = [];
  const spans: ReceivedSpan[] = [];
  const requests: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
  const server = createServer((request, response) => {
    requests.push({ url: request.url ?? '', headers: request.headers });
    void keep(request, response);
  });
  async function keep(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    bodies.push(body);
    // Read here and not in `spans()`, because tests call that many times.
    spans.push(...spansOf(body));
    if (status !== null) {
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
    }
  }
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    requests,
    spans: (): readonly ReceivedSpan[] => spans,
    stop: () => closeNow(server),
  };
}

function spansOf(body: string): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(body) as Otlp;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        service: String(membersOf(resource.attributes)['service.name']),
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentId: span.parentSpanId ?? '',
        attributes: membersOf(span.attributes),
        links: (span.links ?? []).map(({ spanId }) => spanId),
        isFailed: span.status?.code === STATUS_ERROR,
      })),
    ),
  );
}

function membersOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
