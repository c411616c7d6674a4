/**
 * Calls to the API like any client makes them. Every reply is checked against the table of routes: a status of its
 * row, a body that matches that status's schema to the last member, and only the row's error codes.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Static, TSchema } from 'typebox';
import { errorTypeOf, type ErrorCode } from '../../src/domain/errors.ts';
import type { TestAccount } from './accounts.ts';
import { assertInContract, assertShape } from './contract.ts';
import { until } from './stack.ts';

export { assertShape };

export interface CallOptions {
  /** Sent as `Authorization: Bearer <key>`. */
  readonly key?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged, as `application/json` unless the headers say otherwise. */
  readonly rawBody?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the caller waits: fetch then throws a TimeoutError. */
  readonly timeoutMs?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export async function call(
  server: { readonly url: string },
  method: string,
  path: string,
  { key, body, rawBody, headers = {}, timeoutMs }: CallOptions = {},
): Promise<Answer> {
  const sent = rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(server.url + path, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
    ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
  });
  const isStream = response.headers.get('content-type') === 'text/event-stream';
  const answer = isStream ? await firstEventOf(response) : await response.text();
  const isJson = response.headers.get('content-type') === 'application/json; charset=utf-8';
  const received = {
    status: response.status,
    headers: response.headers,
    body: isJson && answer !== '' ? JSON.parse(answer) : answer,
  };
  assertInContract(method, path, received);
  return received;
}

/** The text of a stream up to its first event. Closes the stream. */
async function firstEventOf({ body }: Response): Promise<string> {
  let received = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    received += chunk;
    if (/^data: .*\n\n/m.test(received)) break;
  }
  return received;
}

const BUSY = ['idempotency_key_in_use', 'rate_limited'];

/** Whether a client sends the request again: it did nothing yet, or its outcome is not known. */
export function isToRepeat({ status, body }: Answer): boolean {
  const { code = '' } = (body as { error?: { code?: string } }).error ?? {};
  return status >= 500 || BUSY.includes(code);
}

/**
 * Asks until the answer has another status. On a busy machine, some of many requests wait for too long: they change
 * nothing, and are to be sent again.
 */
export function insistOn(
  ask: () => Promise<Answer>,
  refusals: readonly number[] = [503],
): Promise<Answer> {
  return until(async () => {
    const answer = await ask();
    return !refusals.includes(answer.status) && answer;
  });
}

/** The service's answer to a GET with the owner's key. */
export async function read<Answer>(url: string, key: string): Promise<Answer> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return (await response.json()) as Answer;
}

/** $0.02 for `search`, with the account's own secret key; an undefined member is left out. */
export async function charge(
  server: { readonly url: string },
  account: TestAccount,
  changes: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const body = { apiKey: account.consumerKey, tool: 'search', amount: 0.02, ...changes };
  return call(server, 'POST', '/v1/charges', { key: account.developerKey, body, headers });
}

/** Sends the bytes on a separate connection, ends it, and returns everything received. */
export async function exchange(server: { readonly url: string }, bytes: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.end(bytes);
  return text(socket);
}

/** The body of a reply that has this status and matches the schema exactly. */
export function bodyOf<T extends TSchema>(answer: Answer, status: number, schema: T): Static<T> {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
  assertShape(answer.body, schema);
  return answer.body as Static<T>;
}

/** The one shape of errors: each member, nothing else, and nothing that was not asked for. */
export function assertError(
  answer: Answer,
  status: number,
  code: ErrorCode,
  param?: string,
  facts: Readonly<Record<string, unknown>> = {},
): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  const requestId = answer.headers.get('x-request-id') ?? '';
  assert.match(requestId, /^req_[0-9a-f]{32}$/);
  assertErrorBody(answer.body, requestId, code, param, facts);
  const { retryAfter } = (answer.body as { error: { retryAfter?: number } }).error;
  assert.equal(answer.headers.get('retry-after'), retryAfter?.toString() ?? null);
}

/** The same for a body alone: members of a batch are answered in this form. */
export function assertErrorBody(
  body: unknown,
  requestId: string,
  code: ErrorCode,
  param?: string,
  facts: Readonly<Record<string, unknown>> = {},
): void {
  const { error } = body as { error: Record<string, unknown> };
  const { message, docUrl, retryAfter: _, ...rest } = error;
  const { topUpUrl } = rest;
  if (typeof topUpUrl === 'string') rest['topUpUrl'] = pageOf(topUpUrl);
  for (const name of ['raiseUrl', 'approvalUrl']) {
    const url = rest[name];
    if (typeof url !== 'string' || name in facts) continue;
    assert.match(url, /\/console\/approvals\?budget=bdg_[0-9a-f]{32}&/);
    delete rest[name];
  }
  if (code === 'invalid_api_key' || code === 'invalid_secret_key') {
    const own = code === 'invalid_api_key' ? 'keys' : 'developer/settings';
    const page = param === 'apiKey' ? 'budgets' : own;
    assert.equal(rest['keysUrl'], `${new URL(String(docUrl)).origin}/console/${page}`);
    delete rest['keysUrl'];
  }
  assert.deepEqual(rest, {
    type: errorTypeOf(code),
    code,
    requestId,
    ...(param === undefined ? {} : { param }),
    ...facts,
  });
  assert.match(String(message), /^\S.{10,}\.$/s);
  assert.match(String(docUrl), new RegExp(`^http://127\\.0\\.0\\.1:\\d+/docs/errors#${code}$`));
}

/** A top-up link without its token, which differs each time. */
function pageOf(topUpUrl: string): string {
  assert.match(topUpUrl, /\?link=[\w-]{56}\.[\w-]{43}$/);
  return topUpUrl.slice(0, topUpUrl.indexOf('?'));
}
