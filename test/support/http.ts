/**
 * Calls to the API as any client makes them. Every reply is held to the table of routes: a status that its
 * row names, a body that is that status's schema to the last member, and only error codes that the row has.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Static, TSchema } from 'typebox';
import { errorTypeOf, type ErrorCode } from '../../src/domain/errors.ts';
import type { TestAccount } from './accounts.ts';
import { assertInContract, assertShape } from './contract.ts';

export { assertShape };

export interface CallOptions {
  /** Sent as `Authorization: Bearer <key>`. */
  readonly key?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, as `application/json` unless the headers say otherwise. */
  readonly rawBody?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
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
  { key, body, rawBody, headers = {} }: CallOptions = {},
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
  });
  const answer = await response.text();
  const isJson = response.headers.get('content-type') === 'application/json; charset=utf-8';
  const received = {
    status: response.status,
    headers: response.headers,
    body: isJson && answer !== '' ? JSON.parse(answer) : answer,
  };
  assertInContract(method, path, received);
  return received;
}

/** What the service answers to a GET of the key's owner. */
export async function read<Answer>(url: string, key: string): Promise<Answer> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return (await response.json()) as Answer;
}

/** Two cents for `search`, by the account's own developer key; a member that is undefined is left out. */
export async function charge(
  server: { readonly url: string },
  account: TestAccount,
  changes: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const body = { apiKey: account.consumerKey, tool: 'search', amount: 0.02, ...changes };
  return call(server, 'POST', '/v1/charges', { key: account.developerKey, body, headers });
}

/** Sends the bytes on a line of their own, ends it, and gives all that came back. */
export async function exchange(server: { readonly url: string }, bytes: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.end(bytes);
  return text(socket);
}

/** The body of an answer that has this status and is exactly what the schema says. */
export function bodyOf<T extends TSchema>(answer: Answer, status: number, schema: T): Static<T> {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
  assertShape(answer.body, schema);
  return answer.body as Static<T>;
}

/** The one shape of errors: each member, nothing else, and nothing of what was not asked for. */
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
}

/** The same of a body alone: a member of a batch is answered so. */
export function assertErrorBody(
  body: unknown,
  requestId: string,
  code: ErrorCode,
  param?: string,
  facts: Readonly<Record<string, unknown>> = {},
): void {
  const { error } = body as { error: Record<string, unknown> };
  const { message, docUrl, ...rest } = error;
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
