/**
 * A real HTTP server that answers charges by a script, for answers that a healthy API does not give
 * on demand: silence, a dropped connection, overload. It records the requests.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { FareboxError } from '@farebox/client';

export interface SeenRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** What to do with one request. The last entry of a script serves all that follow. */
export type Step = (response: ServerResponse, request: SeenRequest) => void;

/** A member of a batch, or a charge alone with its key taken from the header. */
export interface SeenCharge {
  readonly apiKey: string;
  readonly tool: string;
  readonly idempotencyKey: string;
}

export class ScriptedService implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  #server = createServer();
  #port = 0;

  static async start(...script: [Step, ...Step[]]): Promise<ScriptedService> {
    const service = new ScriptedService();
    service.#server.on('request', (request, response) => {
      void service.#serve(request, response, script);
    });
    service.#server.listen(0, '127.0.0.1');
    await once(service.#server, 'listening');
    service.#port = (service.#server.address() as AddressInfo).port;
    return service;
  }

  /** Stays the same after close(), when nothing listens there. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The idempotency keys from the header, in order. */
  get keys(): unknown[] {
    return this.seen.map(({ headers }) => headers['idempotency-key']);
  }

  /** The charges of each request, in order. */
  get charges(): SeenCharge[][] {
    return this.seen.map(chargesOf);
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse, script: Step[]) {
    const sent = await text(request);
    const body = sent === '' ? undefined : (JSON.parse(sent) as unknown);
    const { method, url: path, headers } = request;
    const step = script[Math.min(this.seen.length, script.length - 1)];
    const seen = { method, path, headers, body };
    this.seen.push(seen);
    step?.(response, seen);
  }
}

function chargesOf({ path, headers, body }: SeenRequest): SeenCharge[] {
  if (path?.endsWith('/batch')) return (body as { charges: SeenCharge[] }).charges;
  return [{ ...(body as SeenCharge), idempotencyKey: String(headers['idempotency-key']) }];
}

export const CHARGE = {
  id: 'chg_1',
  receipt: 'hmac_sha256.1.e30.c2ln',
  tool: 'search',
  amount: 0.02,
  consumerId: 'cns_1',
  developerId: 'dev_1',
  balance: 4.98,
  createdAt: '2026-11-21T08:00:00.000Z',
};

/** The answer to a charge: its status, `replayed` if it applies, and the body. */
export type Decision = { readonly status: number } & Readonly<Record<string, unknown>>;

/** A successful charge whose id contains its idempotency key. */
export function made({ tool, idempotencyKey }: SeenCharge): Decision {
  return { ...CHARGE, status: 201, tool, id: `chg_${idempotencyKey}` };
}

/** Answers a single charge, or each member of a batch, with its decision. */
export function decide(decision: (charge: SeenCharge) => Decision): Step {
  return (response, request) => {
    const results = chargesOf(request).map(decision);
    if (request.path?.endsWith('/batch')) return answer(200, { results })(response, request);
    const { status, ...body } = results[0] as Decision;
    answer(status, body)(response, request);
  };
}

export const charged: Step = answer(201, CHARGE);

export function answer(status: number, body: unknown, headers: Record<string, string> = {}): Step {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

export function refusal(status: number, code: string, facts: object = {}, retryAfter = '0'): Step {
  const error = { type: 'a_type', code, message: `It is ${code}.`, requestId: 'req_1', ...facts };
  return answer(status, { error }, { 'retry-after': retryAfter, 'x-request-id': 'req_1' });
}

export const silence: Step = () => {};

export const droppedLine: Step = (response) => {
  response.destroy();
};

/** The error that the client raises; anything else fails the test. */
export async function raised(promise: Promise<unknown>): Promise<FareboxError> {
  const error = await promise.then(
    () => assert.fail('nothing was raised'),
    (error: unknown) => error,
  );
  if (!FareboxError.isInstance(error)) throw error;
  return error;
}
