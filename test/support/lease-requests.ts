/** Requests about leases, as tests make them. */
import assert from 'node:assert/strict';
import type { Lease } from '@farebox/client';
import type { Client } from 'pg';
import type { Static } from 'typebox';
import { uuidOf } from '../../src/domain/ids.ts';
import { LeaseReply, PlacedLeaseReply, SettlementReply } from '../../src/schemas/leases.ts';
import { withClient } from '../../src/store/with-client.ts';
import type { TestAccount } from './accounts.ts';
import { makeBudget, makeKey } from './budget-requests.ts';
import { bodyOf, call, type Answer } from './http.ts';
import { until, UNTIL_TIMEOUT_MS } from './stack.ts';

type Server = { readonly url: string };
type Body = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

export interface Entry {
  readonly sequence: number;
  readonly tool?: string;
  readonly amount?: number | string;
  readonly metadata?: object;
}

/** A budget that allows leases, and a spend key of it. */
export async function makeLeasable(
  server: Server,
  key: string,
  body: Body = {},
): Promise<{ budgetId: string; spendKey: string; keyId: string }> {
  const { id: budgetId } = await makeBudget(server, key, { allowLeases: true, ...body });
  const { key: spendKey, id: keyId } = await makeKey(server, key, budgetId);
  return { budgetId, spendKey, keyId };
}

/** $1.00, for `search` at $0.02. */
export function askLease(
  server: Server,
  { developerKey: key }: TestAccount,
  apiKey: string,
  changes: Body = {},
  headers: Headers = {},
): Promise<Answer> {
  const tools = [{ name: 'search', price: 0.02 }];
  return call(server, 'POST', '/v1/leases', {
    key,
    body: { apiKey, tools, amount: 1, ...changes },
    headers,
  });
}

export async function takeLease(
  server: Server,
  account: TestAccount,
  apiKey: string,
  changes: Body = {},
): Promise<Static<typeof PlacedLeaseReply>> {
  return bodyOf(await askLease(server, account, apiKey, changes), 201, PlacedLeaseReply);
}

/** An entry is $0.02 for `search`, unless it says otherwise. */
export function askSettle(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
  entries: readonly Entry[],
  body: Body = {},
): Promise<Answer> {
  const full = entries.map((entry) => ({ tool: 'search', amount: 0.02, ...entry }));
  return call(server, 'POST', `/v1/leases/${id}/settle`, { key, body: { entries: full, ...body } });
}

export async function settle(
  server: Server,
  account: TestAccount,
  id: string,
  entries: readonly Entry[],
  body: Body = {},
): Promise<Static<typeof SettlementReply>> {
  return bodyOf(await askSettle(server, account, id, entries, body), 200, SettlementReply);
}

/** Again while the lease is locked for longer than a settlement may wait. */
export async function settleAtLast(...asked: Parameters<typeof askSettle>) {
  const answer = await until(async () => {
    const each = await askSettle(...asked);
    return each.status !== 503 && each;
  });
  return bodyOf(answer, 200, SettlementReply);
}

export function askRenewal(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
  body: Body = {},
  headers: Headers = {},
): Promise<Answer> {
  return call(server, 'POST', `/v1/leases/${id}/renew`, { key, body, headers });
}

export async function renew(
  server: Server,
  account: TestAccount,
  id: string,
  body: Body = {},
): Promise<Static<typeof LeaseReply>> {
  return bodyOf(await askRenewal(server, account, id, body), 200, LeaseReply);
}

export function askLeaseRelease(
  server: Server,
  { developerKey: key }: TestAccount,
  id: string,
): Promise<Answer> {
  return call(server, 'POST', `/v1/leases/${id}/release`, { key });
}

export async function showLease(
  server: Server,
  key: string,
  id: string,
): Promise<Static<typeof LeaseReply>> {
  return bodyOf(await call(server, 'GET', `/v1/leases/${id}`, { key }), 200, LeaseReply);
}

/** Waits until every call is settled, for longer than a program that ends: a busy machine answers late. */
export async function closeSettled(lease: Pick<Lease, 'close'>): Promise<void> {
  assert.deepEqual(await lease.close({ timeoutMs: UNTIL_TIMEOUT_MS }), { unsettled: [] });
}

/** So many more open leases of the same key, each with the same amount. */
export async function copyLease(client: Client, uuid: string, count: number): Promise<void> {
  await client.query(
    `with copied as (
       insert into farebox.holds select (jsonb_populate_record(h, jsonb_build_object('id', u.id))).*
       from farebox.holds h cross join (select uuidv7() as id from generate_series(1, $2)) u
       where h.id = $1 returning *
     ), leased as (
       insert into farebox.leases select (jsonb_populate_record(l, jsonb_build_object('id', c.id))).*
       from farebox.leases l cross join copied c where l.id = $1
     ), due as (
       insert into farebox.hold_expiries (ledger, due_at, developers, holds)
       select ledger, expires_at, array_agg(developer), array_agg(id) from copied group by 1, 2
     ), used as (
       update farebox.budgets b set used_micros = used_micros + $2 * h.amount_micros
       from farebox.holds h where h.id = $1 and b.ledger = h.ledger and b.consumer_id = h.consumer_id
     )
     update farebox.consumers c set held_micros = c.held_micros + $2 * h.amount_micros,
       reserved_micros = c.reserved_micros + $2 * h.amount_micros
     from farebox.holds h where h.id = $1 and c.ledger = h.ledger and c.id = h.consumer_id`,
    [uuid, count],
  );
}

/** As if its time were over. */
export async function endLease(databaseUrl: string, id: string): Promise<void> {
  await withClient(databaseUrl, {}, async (client) => {
    await client.query(
      `with ended as (update farebox.holds set expires_at = now() where id = $1 returning id)
       update farebox.hold_expiries set due_at = now() from ended where ended.id = any (holds)`,
      [uuidOf('lease', id)],
    );
  });
}

export async function endAllLeases(client: Client): Promise<void> {
  await client.query(`update farebox.holds set expires_at = now() where tool = '' and state = 0`);
  await client.query('update farebox.hold_expiries set due_at = now()');
}
