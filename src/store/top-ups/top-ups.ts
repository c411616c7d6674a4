/**
 * Top-ups. Postgres decides each step by a condition on the row (not yet claimed, still pending), so every
 * function here is safe to repeat and a race has one winner.
 */
import { Type, type Static } from 'typebox';
import { CHECKOUT_MINUTES_MAX, CHECKOUT_MINUTES_MIN } from '../../domain/checkout.ts';
import type { Micros } from '../../domain/money.ts';
import {
  openTopUpsMax,
  TOP_UP_METHODS,
  TOP_UP_STATUSES,
  type AutoTopUpState,
  type TopUpFailure,
} from '../../domain/top-up.ts';
import { findAutoTopUpState, recordAutoTopUpResult, type Ending } from './auto-top-ups.ts';
import { leftOfMonth, lockConsent } from './monthly-ceiling.ts';
import { FailedRefund, failedRefundOf } from './reversals.ts';
import { lockConsumer } from '../balance/consumers.ts';
import { lockName } from '../named-lock.ts';
import { postNotice } from '../outbox.ts';
import {
  durationOf,
  type Connection,
  countRow,
  type Database,
  idRow,
  micros,
  nullable,
  row,
  sql,
  type Transaction,
} from '../database.ts';
import { isBefore, type Page } from '../page.ts';
import { idFloorOf, newIdOf } from '../database-ids.ts';

export const SEEN_VERDICTS = ['paid', 'expired', 'failed'] as const;

const TopUp = Type.Object({
  id: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  accountId: Type.String(),
  method: Type.Enum(TOP_UP_METHODS),
  status: Type.Enum(TOP_UP_STATUSES),
  amountMicros: micros,
  /** Triggered by a charge, not by a request; its method is `direct`. */
  automatic: Type.Boolean(),
  sessionId: nullable(Type.String()),
  sessionUrl: nullable(Type.String()),
  sessionExpiresAt: nullable(Type.String()),
  paymentIntentId: nullable(Type.String()),
  failureCode: nullable(Type.String()),
  failureMessage: nullable(Type.String()),
  /** Whether the payer pays tax on top of the amount; null until the first call to the processor. */
  isTaxed: nullable(Type.Boolean()),
  /** The tax, once it is known, else 0. */
  taxMicros: micros,
  taxCalculationId: nullable(Type.String()),
  /** Checkouts: the card that pays is saved, to be charged without its owner. */
  savesCard: Type.Boolean(),
  /** Checkouts: requested through a top-up link, so nothing of the account is shown there. */
  byLink: Type.Boolean(),
  /** When the bank first wanted the cardholder to confirm a direct top-up. */
  authenticationAskedAt: nullable(Type.String()),
  /** Checkouts: the payer has authorized the payment, and the bank takes days. */
  isUnderWay: Type.Boolean(),
  /** Its workflow has claimed it (`opened_at` is set). */
  isClaimed: Type.Boolean(),
  /** The processor's final verdict (payment-evidence.ts), or null. */
  seenVerdict: nullable(Type.Enum(SEEN_VERDICTS)),
  seenFailureCode: nullable(Type.String()),
  /** The saved card, if its bank declined it permanently. */
  refusedCardId: nullable(Type.String()),
  createdAt: Type.String(),
  /** When it was read, by Postgres' clock. A worker's may be wrong. */
  ageMs: Type.Integer(),
  completedAt: nullable(Type.String()),
});

/** A row of `top_ups`; ids are UUIDs, times ISO 8601. */
export type TopUp = Static<typeof TopUp>;

/** A top-up that is asked for; ids are UUIDs. */
export interface NewTopUp {
  readonly ledger: number;
  readonly consumerId: string;
  readonly accountId: string;
  readonly method: 'checkout' | 'direct';
  /** Whole cents, within the bounds of the method; checked by the caller. */
  readonly amountMicros: Micros;
  readonly idempotencyKey?: string | undefined;
  /** A checkout that saves the card, to be charged without its owner, which needs the owner's consent. */
  readonly savesCard?: boolean;
  /** A checkout that was requested through a top-up link. */
  readonly byLink?: boolean;
  /** Requested with a key, not by the owner in a session. */
  readonly byKey?: boolean;
}

export type AdmitResult =
  | { readonly kind: 'admitted'; readonly topUp: TopUp }
  /** A replay: an earlier request with this idempotency key created the top-up. */
  | { readonly kind: 'known'; readonly topUp: TopUp }
  /** The idempotency key was used for a top-up with a different amount, method, payer or wish to save the card. */
  | { readonly kind: 'key_reused' }
  | { readonly kind: 'consent_required' }
  /** The consumer already has the maximum number of open top-ups. */
  | { readonly kind: 'too_many_open' }
  /** The card was declined too often; how long until it may be charged again. */
  | { readonly kind: 'declined_too_often'; readonly retryAfterMs: number }
  | { readonly kind: 'consent_ceiling_reached'; readonly leftMicros: Micros };

const topUpRow = row(TopUp);
const waitRow = row(Type.Object({ waitMs: Type.Integer() }));
const keyRow = row(Type.Object({ key: Type.String() }));
const ownerRow = row(
  Type.Object({
    automatic: Type.Boolean(),
    ledger: Type.Integer(),
    consumerId: Type.String(),
  }),
);

const columns = sql.fragment`
  id, ledger, consumer_id as "consumerId", account_id as "accountId", method, status,
  amount_micros as "amountMicros", automatic, session_id as "sessionId", session_url as "sessionUrl",
  session_expires_at as "sessionExpiresAt", payment_intent_id as "paymentIntentId", failure_code as "failureCode",
  failure_message as "failureMessage", is_taxed as "isTaxed", tax_micros as "taxMicros",
  tax_calculation_id as "taxCalculationId", saves_card as "savesCard", by_link as "byLink",
  authentication_asked_at as "authenticationAskedAt", under_way_at is not null as "isUnderWay",
  opened_at is not null as "isClaimed",
  seen_verdict as "seenVerdict", seen_failure_code as "seenFailureCode", refused_card_id as "refusedCardId",
  created_at as "createdAt", (extract(epoch from clock_timestamp() - created_at) * 1000)::int8 as "ageMs",
  completed_at as "completedAt"
`;

/** How long the relays leave a new top-up to the request that wrote it, which starts the workflow itself. */
const IN_HAND_MS = 5_000;

/**
 * Writes the row of a new top-up, `pending` and unclaimed, and the notice that starts its workflow even if the request
 * dies; or refuses. A direct top-up needs the owner's consent, whose ceiling per UTC month holds across all processes.
 */
export async function admitTopUp(database: Connection, request: NewTopUp): Promise<AdmitResult> {
  return database.transaction(async (tx) => {
    // First: the look-up of the key and the count are then exact, and a request that waits here has locked
    // nothing else.
    await lockName(tx, `farebox.top_ups ${request.consumerId}`);
    const isDirect = request.method === 'direct';
    const consent =
      isDirect || request.savesCard ? await lockConsent(tx, request.consumerId) : null;
    const known = await findByKey(tx, request);
    if (known) return sameRequest(known, request) ? { kind: 'known', topUp: known } : REUSED;
    if (consent?.ceiling === null) return { kind: 'consent_required' };
    if (consent && isDirect) {
      const leftMicros = leftOfMonth(consent);
      if (request.amountMicros > leftMicros) return { kind: 'consent_ceiling_reached', leftMicros };
      const retryAfterMs = await findDeclinedWait(tx, request.consumerId);
      if (retryAfterMs > 0) return { kind: 'declined_too_often', retryAfterMs };
    }
    if (await hasTooManyOpen(tx, request)) return { kind: 'too_many_open' };
    const topUp = await insertTopUp(tx, {
      ...request,
      consentCeiling: isDirect ? (consent?.ceiling ?? null) : null,
    });
    if (!topUp) throw new Error('A top-up with this key was created without the lock');
    await postNotice(tx, 'top_up', topUp.id, { ledger: request.ledger, delayMs: IN_HAND_MS });
    return { kind: 'admitted', topUp };
  });
}

/** A checkout stays open for a day at most; what is older waits for an operator, and is not counted. */
const COUNTED_FROM = idFloorOf(sql.fragment`now() - interval '2 days'`);

/** What links or keys have opened does not keep the owner from topping up. */
async function hasTooManyOpen(
  tx: Transaction,
  { consumerId, byLink = false, byKey = false }: NewTopUp,
): Promise<boolean> {
  const open = await tx.oneFirst(sql.type(countRow)`
    select count(*) as count from farebox.top_ups
    where consumer_id = ${consumerId} and status = 'pending' and by_link = ${byLink}
      and id > ${COUNTED_FROM}
  `);
  return open >= openTopUpsMax({ byLink, byKey });
}

/** The most declines in an hour: card networks charge for more, and block merchants that continue. */
const DECLINES_PER_HOUR_MAX = 5;

/**
 * Milliseconds until the saved card may be tried: an hour after the first of the last declines. A credit makes it 0.
 */
export async function findDeclinedWait(
  connection: Connection,
  consumerId: string,
): Promise<number> {
  // No payment takes longer to settle, so what ended in the last hour is not older.
  const oldest = sql.fragment`now() - interval '40 days'`;
  const wait = await connection.maybeOneFirst(sql.type(waitRow)`
    select ceil(extract(epoch from seen_at + interval '1 hour' - now()) * 1000)::int8 as "waitMs"
    from farebox.top_ups
    where consumer_id = ${consumerId} and method = 'direct' and created_at > ${oldest} and seen_verdict = 'failed'
      and seen_failure_code in ('card_declined', 'card_expired') and payment_intent_id is not null
      and seen_at > now() - interval '1 hour'
      and seen_at > coalesce(
        (select max(completed_at) from farebox.top_ups
          where consumer_id = ${consumerId} and id > ${idFloorOf(oldest)}), '-infinity')
    order by seen_at desc offset ${DECLINES_PER_HOUR_MAX - 1} limit 1
  `);
  return wait ?? 0;
}

const REUSED: AdmitResult = { kind: 'key_reused' };

function sameRequest(topUp: TopUp, request: NewTopUp): boolean {
  return (
    topUp.amountMicros === request.amountMicros &&
    topUp.method === request.method &&
    topUp.savesCard === (request.savesCard ?? false) &&
    topUp.byLink === (request.byLink ?? false)
  );
}

export async function findByKey(
  connection: Connection,
  request: Pick<NewTopUp, 'ledger' | 'consumerId' | 'idempotencyKey'>,
): Promise<TopUp | null> {
  if (request.idempotencyKey === undefined) return null;
  return connection.maybeOne(sql.type(topUpRow)`
    select ${columns} from farebox.top_ups
    where ledger = ${request.ledger} and consumer_id = ${request.consumerId}
      and idempotency_key = ${request.idempotencyKey}
  `);
}

interface InsertedTopUp extends Omit<NewTopUp, 'method'> {
  readonly method: TopUp['method'];
  readonly status?: 'pending' | 'completed' | 'failed';
  readonly failure?: TopUpFailure | undefined;
  readonly consentCeiling?: number | null;
}

/** Null: the consumer's idempotency key has made another one. One that is not pending will never have a workflow. */
export async function insertTopUp(
  tx: Transaction,
  { status = 'pending', failure, consentCeiling = null, ...request }: InsertedTopUp,
): Promise<TopUp | null> {
  const openedAt = status === 'pending' ? null : sql.fragment`now()`;
  const completedAt = status === 'completed' ? sql.fragment`now()` : null;
  return tx.maybeOne(sql.type(topUpRow)`
    insert into farebox.top_ups
      (id, ledger, consumer_id, account_id, method, amount_micros, idempotency_key,
        consent_ceiling_micros, saves_card, by_link, status, failure_code, failure_message, opened_at, completed_at)
    values (${newIdOf(request.consumerId)}, ${request.ledger}, ${request.consumerId}, ${request.accountId},
      ${request.method}, ${request.amountMicros}, ${request.idempotencyKey ?? null},
      ${consentCeiling}, ${request.savesCard ?? false}, ${request.byLink ?? false}, ${status}, ${failure?.code ?? null},
      ${failure?.message ?? null}, ${openedAt}, ${completedAt})
    on conflict on constraint top_ups_idempotency_unique do nothing
    returning ${columns}
  `);
}

/**
 * Claims the top-up for its workflow. From now on it has effects and its row stays, and the notice that starts it is
 * deleted. Null if the row was withdrawn: then nothing may be done.
 */
export async function claimTopUp(connection: Connection, id: string): Promise<TopUp | null> {
  return connection.maybeOne(sql.type(topUpRow)`
    with begun as (
      delete from farebox.outbox where topic = 'top_up' and subject_id = ${id}
    )
    update farebox.top_ups set opened_at = coalesce(opened_at, now())
    where id = ${id} returning ${columns}
  `);
}

/** Before a request answers 202 for a top-up that its workflow may not have claimed: nobody withdraws it afterwards. */
export async function acceptTopUp(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.top_ups set accepted_at = now()
    where id = ${id} and opened_at is null and accepted_at is null
  `);
}

/** True: the top-up has had no effect and never will. False: it was accepted or claimed, or no longer exists. */
export async function withdrawTopUp(connection: Connection, id: string): Promise<boolean> {
  const withdrawn = await connection.maybeOne(sql.type(idRow)`
    with withdrawn as (
      delete from farebox.top_ups where id = ${id} and opened_at is null and accepted_at is null
      returning id
    ), called_off as (
      delete from farebox.outbox where topic = 'top_up' and subject_id in (select id from withdrawn)
    )
    select id from withdrawn
  `);
  return withdrawn !== null;
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

/** As its owner and operators see it. */
export type ListedTopUp = Static<typeof ListedTopUp>;
const ListedTopUp = Type.Object({
  ...TopUp.properties,
  /** By refunds that are made or requested. */
  refundedMicros: micros,
  /** Unless nothing of it is unspent. A fraud warning calls for a refund, and a dispute prevents one. */
  isRefundable: Type.Boolean(),
  failedRefund: nullable(FailedRefund),
});
const listedRow = row(ListedTopUp);
const listedColumns = sql.fragment`
  ${columns}, (
    select coalesce(sum(r.amount_micros), 0)::int8 from farebox.reversals r
    where r.top_up_id = top_ups.id and r.kind = 'refund' and r.status in ('requested', 'made')
  ) as "refundedMicros",
  method in ('checkout', 'direct') and (
    status in ('completed', 'partially_refunded') or status = 'disputed' and not exists (
      select from farebox.reversals r
      where r.top_up_id = top_ups.id and r.kind = 'dispute' and r.status in ('open', 'lost')
    )
  ) as "isRefundable", ${failedRefundOf(sql.fragment`top_ups.id`)} as "failedRefund"
`;

/** A consumer sees only its own. */
export async function findTopUpOf(
  connection: Connection,
  consumerId: string,
  id: string,
): Promise<ListedTopUp | null> {
  return connection.maybeOne(sql.type(listedRow)`
    select ${listedColumns} from farebox.top_ups where id = ${id} and consumer_id = ${consumerId}
  `);
}

/** A consumer's top-ups, newest first. */
export async function listTopUpsOf(
  connection: Connection,
  consumerId: string,
  page: Page,
): Promise<readonly ListedTopUp[]> {
  return connection.any(sql.type(listedRow)`
    select ${listedColumns} from farebox.top_ups where consumer_id = ${consumerId} and ${isBefore(page)}
    order by id desc limit ${page.limit}
  `);
}

/** The idempotency keys of a consumer's top-ups of the last two hours that begin like this. */
export async function listIdempotencyKeys(
  connection: Connection,
  consumerId: string,
  prefix: string,
): Promise<readonly string[]> {
  return connection.anyFirst(sql.type(keyRow)`
    select idempotency_key as key from farebox.top_ups
    where consumer_id = ${consumerId} and id > ${idFloorOf(sql.fragment`now() - interval '2 hours'`)}
      and starts_with(idempotency_key, ${prefix})
  `);
}

/** Decides once, by the setting of that time, so that a repeated call has the same parameters. */
export async function planTax(
  connection: Connection,
  id: string,
  isTaxed: boolean,
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set is_taxed = coalesce(is_taxed, ${isTaxed})
    where id = ${id} returning ${columns}
  `);
}

/** The first recorded calculation stays: its amount is what the payment intent asks for. */
export async function recordTaxCalculation(
  connection: Connection,
  id: string,
  tax: { readonly calculationId: string; readonly micros: Micros },
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set
      tax_micros = case when tax_calculation_id is null then ${tax.micros} else tax_micros end,
      tax_calculation_id = coalesce(tax_calculation_id, ${tax.calculationId})
    where id = ${id} returning ${columns}
  `);
}

/** Stripe requires a session to stay open for 30 minutes to 24 hours from its creation, and the call takes time. */
const SESSION_MS_MIN = CHECKOUT_MINUTES_MIN * 60_000;
const CALL_MS = 30_000;
/**
 * How far our clock and Stripe's may differ, in either direction: as far as those of a process and Postgres
 * for charges.
 */
const SKEW_MS = 300_000;

/**
 * Fixes the session's expiry before the session is created. The expiry stays while it is far enough away, so that a
 * repeated call has the same parameters. 24 hours are the processor's default, so they are not sent, nor is a
 * time so near to them that the processor might find it too late.
 */
export async function planSession(
  connection: Connection,
  id: string,
  minutes: number,
): Promise<TopUp> {
  const msMin = SESSION_MS_MIN + SKEW_MS;
  const ms = Math.max(minutes * 60_000, msMin) + CALL_MS;
  const isLongest = ms + SKEW_MS >= CHECKOUT_MINUTES_MAX * 60_000;
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set session_expires_at = case
      when ${isLongest} then null
      when session_expires_at > now() + ${durationOf(msMin)} then session_expires_at
      else date_trunc('second', now() + ${durationOf(ms)}) end
    where id = ${id} returning ${columns}
  `);
}

/** The first recorded session stays: nobody ever saw a later one. */
export async function recordSession(
  connection: Connection,
  id: string,
  /** Without a URL when it is paid or expired. */
  session: { readonly id: string; readonly url: string | null },
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set updated_at = now(),
      session_url = case when session_id is null then ${session.url} else session_url end,
      session_id = coalesce(session_id, ${session.id})
    where id = ${id} returning ${columns}
  `);
}

/**
 * The first recorded payment intent stays: only that one is ever confirmed. None is recorded after a verdict, such as
 * that of an operator's cancel.
 */
export async function recordPaymentIntent(
  connection: Connection,
  id: string,
  paymentIntentId: string,
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set updated_at = now(),
      payment_intent_id = case when seen_verdict is null
        then coalesce(payment_intent_id, ${paymentIntentId}) else payment_intent_id end
    where id = ${id} returning ${columns}
  `);
}

/**
 * Fails a top-up whose row has this failure as evidence; others stay unchanged. Returns the state of automatic
 * top-ups, if this was one, even when it is repeated.
 */
export async function failTopUp(
  database: Database,
  id: string,
  ending: Omit<Extract<Ending, { status: 'failed' }>, 'status'>,
): Promise<AutoTopUpState | null> {
  return endUnpaid(database, id, { status: 'failed', ...ending });
}

/** Expires a top-up whose row has evidence that it can no longer be paid; others stay unchanged. */
export async function expireTopUp(database: Database, id: string): Promise<void> {
  await endUnpaid(database, id, { status: 'expired' });
}

async function endUnpaid(
  database: Database,
  id: string,
  ending: Exclude<Ending, { status: 'completed' }>,
): Promise<AutoTopUpState | null> {
  const failure = 'failure' in ending ? ending.failure : undefined;
  return database.transaction(async (tx) => {
    const { automatic, ...consumer } = await tx.one(sql.type(ownerRow)`
      select automatic, ledger, consumer_id as "consumerId" from farebox.top_ups where id = ${id}
    `);
    if (automatic) await lockConsumer(tx, consumer);
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      update farebox.top_ups set status = ${ending.status}, updated_at = now(),
        failure_code = ${failure?.code ?? null}, failure_message = ${failure?.message ?? null}
      where id = ${id} and status = 'pending' and seen_verdict = ${ending.status}
        and seen_failure_code is not distinct from ${failure?.code ?? null}
    `);
    if (!automatic) return null;
    return rowCount === 1
      ? recordAutoTopUpResult(tx, consumer, ending)
      : findAutoTopUpState(tx, consumer);
  });
}
