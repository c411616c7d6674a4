/**
 * Top-ups. Postgres decides each step by a condition on the row (not yet opened, still pending), so
 * every function here is safe to repeat and a race has one winner.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import type { Micros } from '../domain/money.ts';
import { TOP_UP_METHODS, TOP_UP_STATUSES, type TopUpFailure } from '../domain/top-up.ts';
import { row, sql, type Connection, type Database, type Transaction } from './database.ts';

const nullableText = Type.Union([Type.String(), Type.Null()]);

const TopUp = Type.Object({
  id: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  accountId: Type.String(),
  method: Type.Enum(TOP_UP_METHODS),
  status: Type.Enum(TOP_UP_STATUSES),
  amountMicros: Type.Unsafe<Micros>(Type.Integer()),
  sessionId: nullableText,
  sessionUrl: nullableText,
  paymentIntentId: nullableText,
  failureCode: nullableText,
  failureMessage: nullableText,
  createdAt: Type.String(),
  completedAt: nullableText,
});

/** A row of `top_ups`; ids are UUIDs, times ISO 8601. */
export type TopUp = Static<typeof TopUp>;

export interface NewTopUp {
  readonly ledger: number;
  readonly consumerId: string;
  readonly accountId: string;
  readonly method: 'checkout' | 'direct';
  readonly amountMicros: Micros;
  readonly idempotencyKey?: string | undefined;
}

export type AdmitResult =
  | { readonly kind: 'admitted'; readonly topUp: TopUp }
  /** The idempotency key has named this top-up before. */
  | { readonly kind: 'known'; readonly topUp: TopUp }
  /** The idempotency key has named a top-up of another amount or method. */
  | { readonly kind: 'key_reused' }
  | { readonly kind: 'consent_required' }
  | { readonly kind: 'consent_ceiling_reached'; readonly leftMicros: Micros };

const topUpRow = row(TopUp);
const idRow = row(Type.Object({ id: Type.String() }));
const ceilingRow = row(Type.Object({ ceiling: Type.Union([Type.Integer(), Type.Null()]) }));
const takenRow = row(Type.Object({ taken: Type.Integer() }));

const columns = sql.fragment`
  id, ledger, consumer_id as "consumerId", account_id as "accountId", method, status,
  amount_micros as "amountMicros", session_id as "sessionId", session_url as "sessionUrl",
  payment_intent_id as "paymentIntentId", failure_code as "failureCode",
  failure_message as "failureMessage", created_at as "createdAt", completed_at as "completedAt"
`;

/**
 * Writes the row that a top-up begins with, in status `pending` and not opened, or refuses. A direct
 * one needs its owner's consent, whose ceiling is per UTC month and holds across all processes.
 */
export async function admitTopUp(database: Database, request: NewTopUp): Promise<AdmitResult> {
  return database.transaction(async (tx) => {
    // Locks the account, which makes one direct top-up wait for another and so sums exact.
    const ceiling = request.method === 'direct' ? await lockCeiling(tx, request.accountId) : null;
    const known = await findByKey(tx, request);
    if (known) return sameRequest(known, request) ? { kind: 'known', topUp: known } : REUSED;
    if (request.method === 'direct') {
      if (ceiling === null) return { kind: 'consent_required' };
      const left = ceiling - (await takenThisMonth(tx, request.consumerId));
      if (request.amountMicros > left) {
        return { kind: 'consent_ceiling_reached', leftMicros: Math.max(left, 0) as Micros };
      }
    }
    const topUp = await insert(tx, request);
    if (topUp) return { kind: 'admitted', topUp };
    // Another request with the same key committed since the look-up above.
    const winner = await findByKey(tx, request);
    if (!winner)
      throw new Error('a top-up with this key came and went; the request may be repeated');
    return sameRequest(winner, request) ? { kind: 'known', topUp: winner } : REUSED;
  });
}

const REUSED: AdmitResult = { kind: 'key_reused' };

function sameRequest(topUp: TopUp, request: NewTopUp): boolean {
  return topUp.amountMicros === request.amountMicros && topUp.method === request.method;
}

async function lockCeiling(tx: Transaction, accountId: string): Promise<number | null> {
  return tx.oneFirst(sql.type(ceilingRow)`
    select consent_ceiling_micros as ceiling from farebox.accounts where id = ${accountId} for update
  `);
}

async function takenThisMonth(tx: Transaction, consumerId: string): Promise<number> {
  return tx.oneFirst(sql.type(takenRow)`
    select coalesce(sum(amount_micros), 0) as taken from farebox.top_ups
    where consumer_id = ${consumerId} and method = 'direct' and status not in ('failed', 'expired')
      and created_at >= date_trunc('month', now() at time zone 'utc') at time zone 'utc'
  `);
}

async function findByKey(tx: Transaction, request: NewTopUp): Promise<TopUp | null> {
  if (request.idempotencyKey === undefined) return null;
  return tx.maybeOne(sql.type(topUpRow)`
    select ${columns} from farebox.top_ups
    where consumer_id = ${request.consumerId} and idempotency_key = ${request.idempotencyKey}
  `);
}

async function insert(tx: Transaction, request: NewTopUp): Promise<TopUp | null> {
  return tx.maybeOne(sql.type(topUpRow)`
    insert into farebox.top_ups
      (id, ledger, consumer_id, account_id, method, amount_micros, idempotency_key)
    values (${randomUUIDv7()}, ${request.ledger}, ${request.consumerId}, ${request.accountId},
      ${request.method}, ${request.amountMicros}, ${request.idempotencyKey ?? null})
    on conflict on constraint top_ups_idempotency_unique do nothing
    returning ${columns}
  `);
}

/**
 * The workflow takes the top-up up: from now on it has effects and its row stays. Null when the row
 * was withdrawn, in which case nothing may be done.
 */
export async function openTopUp(connection: Connection, id: string): Promise<TopUp | null> {
  return connection.maybeOne(sql.type(topUpRow)`
    update farebox.top_ups set opened_at = coalesce(opened_at, now())
    where id = ${id} returning ${columns}
  `);
}

/** True: the top-up has had no effect anywhere and never will. False: it was opened, or is gone. */
export async function withdrawTopUp(connection: Connection, id: string): Promise<boolean> {
  const withdrawn = await connection.maybeOne(sql.type(idRow)`
    delete from farebox.top_ups where id = ${id} and opened_at is null returning id
  `);
  return withdrawn !== null;
}

/** Withdraws what a request left behind that died before it could start the workflow. */
export async function withdrawAbandoned(
  connection: Connection,
  olderThanMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    delete from farebox.top_ups
    where opened_at is null and created_at < now() - ${olderThanMs}::int8 * interval '1 ms'
  `);
  return rowCount;
}

export async function findTopUp(connection: Connection, id: string): Promise<TopUp | null> {
  return connection.maybeOne(sql.type(topUpRow)`
    select ${columns} from farebox.top_ups where id = ${id}
  `);
}

export async function getTopUp(connection: Connection, id: string): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    select ${columns} from farebox.top_ups where id = ${id}
  `);
}

/** A consumer sees only its own. */
export async function findTopUpOf(
  connection: Connection,
  consumerId: string,
  id: string,
): Promise<TopUp | null> {
  return connection.maybeOne(sql.type(topUpRow)`
    select ${columns} from farebox.top_ups where id = ${id} and consumer_id = ${consumerId}
  `);
}

/** A consumer's top-ups, newest first; `beforeId` is the last id of the page before. */
export async function listTopUpsOf(
  connection: Connection,
  consumerId: string,
  page: { readonly limit: number; readonly beforeId?: string | undefined },
): Promise<readonly TopUp[]> {
  const before =
    page.beforeId === undefined ? sql.fragment`` : sql.fragment`and id < ${page.beforeId}`;
  return connection.any(sql.type(topUpRow)`
    select ${columns} from farebox.top_ups where consumer_id = ${consumerId} ${before}
    order by id desc limit ${page.limit}
  `);
}

/** The first session that is recorded stays: a later one was never shown to anybody. */
export async function recordSession(
  connection: Connection,
  id: string,
  session: { readonly id: string; readonly url: string },
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set updated_at = now(),
      session_url = case when session_id is null then ${session.url} else session_url end,
      session_id = coalesce(session_id, ${session.id})
    where id = ${id} returning ${columns}
  `);
}

/** The first payment intent that is recorded stays: only that one is ever confirmed. */
export async function recordPaymentIntent(
  connection: Connection,
  id: string,
  paymentIntentId: string,
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set updated_at = now(),
      payment_intent_id = coalesce(payment_intent_id, ${paymentIntentId})
    where id = ${id} returning ${columns}
  `);
}

/** Ends a top-up that was not paid; one that is credited already stays so. */
export async function failTopUp(
  connection: Connection,
  id: string,
  failure: TopUpFailure,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set status = 'failed', updated_at = now(),
      failure_code = ${failure.code}, failure_message = ${failure.message}
    where id = ${id} and status = 'pending'
  `);
}

/** Ends a top-up that nobody paid in time; one that is credited already stays so. */
export async function expireTopUp(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set status = 'expired', updated_at = now()
    where id = ${id} and status = 'pending'
  `);
}
