/** The rows of top-ups, and how they are found and listed. What happens to one is in the files beside this. */
import { Type, type Static } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { TOP_UP_METHODS, TOP_UP_STATUSES } from '../../domain/top-up.ts';
import { FailedRefund, failedRefundOf } from './failed-refunds.ts';
import { type Connection, micros, nullable, row, sql } from '../database.ts';
import { isBefore, type Page } from '../page.ts';
import { idFloorOf } from '../database-ids.ts';

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

export const topUpRow = row(TopUp);
const keyRow = row(Type.Object({ key: Type.String() }));
export const topUpColumns = sql.fragment`
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

export async function findByKey(
  connection: Connection,
  request: Pick<NewTopUp, 'ledger' | 'consumerId' | 'idempotencyKey'>,
): Promise<TopUp | null> {
  if (request.idempotencyKey === undefined) return null;
  return connection.maybeOne(sql.type(topUpRow)`
    select ${topUpColumns} from farebox.top_ups
    where ledger = ${request.ledger} and consumer_id = ${request.consumerId}
      and idempotency_key = ${request.idempotencyKey}
  `);
}

export async function findTopUp(connection: Connection, id: string): Promise<TopUp | null> {
  return connection.maybeOne(sql.type(topUpRow)`
    select ${topUpColumns} from farebox.top_ups where id = ${id}
  `);
}

export async function getTopUp(connection: Connection, id: string): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    select ${topUpColumns} from farebox.top_ups where id = ${id}
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
  ${topUpColumns}, (
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
