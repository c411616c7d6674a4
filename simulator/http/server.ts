/** The HTTP server: the API under /v1/, the hosted pages under /pay/, the controls under /_simulator/. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Answer, Reply } from './answers.ts';
import { answerApi } from './api.ts';
import { answerControl } from '../controls/controls.ts';
import { ApiError, outage, refused } from './errors.ts';
import { API_VERSION } from '../events.ts';
import { Faults, type Fault, type FaultAround } from '../controls/faults.ts';
import { IdempotencyKeys } from './idempotency.ts';
import { answerPage } from '../hosted-page/pay.ts';
import { controlRefusalOf, refusalOf } from './gate.ts';
import type { Simulation } from '../simulation.ts';

const BODY_BYTES_MAX = 1024 * 1024;
/** Longer than clients keep an idle connection: the server never closes one that a request is being sent on. */
const IDLE_MS = 75_000;

interface Received {
  readonly method: string;
  readonly url: URL;
  readonly body: Buffer;
  readonly headers: IncomingMessage['headers'];
}

/** `token`: required by the controls. */
export function createSimulatorServer(simulation: Simulation, token: string): Server {
  const faults = new Faults();
  const keys = new IdempotencyKeys(simulation.store);

  async function answer(request: Received, fault: Fault | undefined): Promise<Answer> {
    if (fault?.kind === 'error') return json(outage(fault.status, fault.code), fault.headers);
    const around = aroundOf(faults, fault);
    const { pathname } = request.url;
    if (pathname.startsWith('/pay/')) {
      await around.before();
      const sessionId = pathname.slice('/pay/'.length);
      const contentType = request.headers['content-type'] ?? '';
      const accept = request.headers.accept ?? '';
      const { method, body } = request;
      const done = await answerPage(simulation, { method, sessionId, body, contentType, accept });
      return around.answerInstead === undefined ? done : json(outage(around.answerInstead));
    }
    return answerApi(simulation, keys, apiRequestOf(request), around);
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await receive(incoming);
    const { method, url } = request;
    const refusal = refusalOf(request);
    if (refusal) return send(response, json(refusal));
    if (url.pathname.startsWith('/_simulator/')) {
      const refused = controlRefusalOf(request, token);
      if (refused) return send(response, json(refused));
      return send(response, await control(simulation, faults, request));
    }
    if (simulation.rateLimit.refuses(Date.now())) {
      return send(response, json(outage(429), { 'Stripe-Rate-Limited-Reason': 'global-rate' }));
    }
    const fault = faults.take(method, url.pathname);
    if (fault?.kind === 'drop') return void incoming.socket.destroy();
    const done = await answer(request, fault);
    if (fault?.kind === 'do_then_drop') return void incoming.socket.destroy();
    send(response, done);
  }

  return createServer({ keepAliveTimeout: IDLE_MS }, (incoming, response) => {
    serve(incoming, response).catch((error: unknown) => {
      // The client left before the body was complete, or the body is too large: nobody waits for an answer.
      if (!incoming.complete) return incoming.socket.destroy();
      process.stderr.write(`simulator: ${error instanceof Error ? error.stack : String(error)}\n`);
      if (response.headersSent) incoming.socket.destroy();
      else send(response, json(outage(500)));
    });
  });
}

async function control(simulation: Simulation, faults: Faults, request: Received): Promise<Answer> {
  const path = request.url.pathname.slice('/_simulator/'.length);
  try {
    const body = parseJson(request.body);
    return json({
      status: 200,
      body: await answerControl(simulation, faults, request.method, path, body),
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return json({ status: error.status, body: error.body });
  }
}

function parseJson(body: Buffer): Record<string, unknown> {
  if (body.length === 0) return {};
  try {
    const value: unknown = JSON.parse(body.toString());
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Falls through to the refusal, like any other body that is not an object.
  }
  throw refused('The body must be a JSON object.');
}

function apiRequestOf({ method, url, body, headers }: Received) {
  const key = headers['idempotency-key'];
  return {
    method,
    path: url.pathname,
    form: method === 'GET' ? url.search.slice(1) : body.toString(),
    authorization: headers.authorization,
    idempotencyKey: Array.isArray(key) ? key[0] : key,
  };
}

function aroundOf(faults: Faults, fault: Fault | undefined): FaultAround {
  return {
    before: async () => {
      if (fault?.kind === 'delay') await faults.delay(fault.ms);
    },
    answerInstead: fault?.kind === 'do_then_error' ? fault.status : undefined,
  };
}

async function receive(incoming: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error('request body too large');
    chunks.push(chunk);
  }
  return {
    method: incoming.method ?? 'GET',
    url: new URL(incoming.url ?? '/', 'http://simulator'),
    body: Buffer.concat(chunks),
    headers: incoming.headers,
  };
}

function json({ status, body }: Reply, headers: Record<string, string> = {}): Answer {
  return { status, body: JSON.stringify(body), headers };
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Stripe-Version': API_VERSION,
    ...headers,
  });
  response.end(body);
}
