/** Requests about holds, as tests make them. */
import type { Static } from 'typebox';
import { CaptureReply, HoldReply, ListedHold, PlacedHoldReply } from '../../src/schemas/holds.ts';
import type { TestAccount } from './accounts.ts';
import { bodyOf, call, type Answer } from './http.ts';

type Server = { readonly url: string };
type Headers = Readonly<Record<string, string>>;
type Body = Readonly<Record<string, unknown>>;

export const keyed = (name: string): Headers => ({ 'idempotency-key': name });

/** $1.00 for `search`; an undefined member is left out. */
export function askHold(
  server: Server,
  { consumerKey, developerKey }: TestAccount,
  changes: Body = {},
  headers: Headers = {},
): Promise<Answer> {
  const body = { apiKey: consumerKey, tool: 'search', amount: 1, ...changes };
  return call(server, 'POST', '/v1/holds', { key: developerKey, body, headers });
}

export async function place(
  server: Server,
  account: TestAccount,
  changes: Body = {},
): Promise<Static<typeof PlacedHoldReply>> {
  return bodyOf(await askHold(server, account, changes), 201, PlacedHoldReply);
}

export function askCapture(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
  body: unknown = {},
  headers: Headers = {},
): Promise<Answer> {
  return call(server, 'POST', `/v1/holds/${id}/capture`, { key, body, headers });
}

export async function capture(
  server: Server,
  account: TestAccount,
  id: string,
  body: Body = {},
): Promise<Static<typeof CaptureReply>> {
  return bodyOf(await askCapture(server, account, id, body), 201, CaptureReply);
}

export function askRelease(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
): Promise<Answer> {
  return call(server, 'POST', `/v1/holds/${id}/release`, { key });
}

export async function release(
  server: Server,
  account: TestAccount,
  id: string,
): Promise<Static<typeof HoldReply>> {
  return bodyOf(await askRelease(server, account, id), 200, HoldReply);
}

export function askExtension(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
  expiresIn: unknown,
  headers: Headers = {},
): Promise<Answer> {
  const body = { expiresIn };
  return call(server, 'POST', `/v1/holds/${id}/extend`, { key, body, headers });
}

export async function extend(
  server: Server,
  account: TestAccount,
  id: string,
  expiresIn: number,
  headers: Headers = {},
): Promise<Static<typeof HoldReply>> {
  return bodyOf(await askExtension(server, account, id, expiresIn, headers), 200, HoldReply);
}

/** As its developer sees it. */
export async function show(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
): Promise<Static<typeof ListedHold>> {
  return bodyOf(await call(server, 'GET', `/v1/holds/${id}`, { key }), 200, ListedHold);
}
