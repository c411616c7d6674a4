/**
 * The ledger's side of reconciliation, and its state: how far it has walked Stripe's records, and the differences it
 * found. A difference is a row for as long as it exists.
 */
import { Type, type Static } from 'typebox';
import { DIFFERENCE_KINDS } from '../../domain/difference.ts';
import { REVERSAL_STATUSES } from '../../domain/reversal.ts';
import { type Connection, type Database, idRow, micros, nullable, row, sql } from '../database.ts';
import type { Offender } from '../doctor/findings.ts';
import { OPEN_DIFFERENCES } from './settled-differences.ts';

const Difference = Type.Object({
  topUpId: Type.String(),
  kind: Type.Enum(DIFFERENCE_KINDS),
  processorMicros: micros,
  ledgerMicros: micros,
  /** The payments that were compared. */
  paymentIntentIds: Type.Array(Type.String()),
  /** The one that the top-up was credited for, if it was. */
  creditedPaymentIntentId: nullable(Type.String()),
  /** When it was first found. */
  since: Type.String(),
});
export type Difference = Static<typeof Difference>;

const Booked = Type.Object({
  topUpId: Type.String(),
  /** The requested amount. */
  amountMicros: micros,
  paymentIntentId: nullable(Type.String()),
  creditedMicros: micros,
  isTaxed: nullable(Type.Boolean()),
  /** What was paid on top of it, once that is known. */
  taxMicros: micros,
});
/** A top-up, and the amount credited for it. */
export type Booked = Static<typeof Booked>;

const Claim = Type.Object({
  topUpId: Type.String(),
  processorId: Type.String(),
  status: Type.Enum(REVERSAL_STATUSES),
  /** With tax. */
  grossMicros: micros,
  /** A dismissed fraud warning: it holds nothing, even while it is open at Stripe. */
  isDismissed: Type.Boolean(),
});
/** The amount that a refund, dispute or fraud warning takes or holds, if Stripe has it, or should have it by now. */
export type Claim = Static<typeof Claim>;

const claimRow = row(Claim);
const differenceRow = row(Difference);
const bookedRow = row(Booked);
const lateRow = row(Type.Object({ detail: Type.String() }));
const sinceRow = row(Type.Object({ since: nullable(Type.String()) }));

/**
 * The time from which to walk Stripe's records: the end of the last walk, less an overlap, because objects change after
 * they are created. The overlap is three days in the first walk of a UTC day and an hour in the others. The first walk
 * starts at the oldest top-up.
 */
export async function getWalkStart(connection: Connection): Promise<string> {
  const since = await connection.oneFirst(sql.type(sinceRow)`
    select coalesce(
      (select least(walked_until, now()) - case when walked_until < date_trunc('day', now(), 'UTC')
        then interval '3 days' else interval '1 hour' end from farebox.reconciliation),
      (select min(created_at) - interval '3 days' from farebox.top_ups where method in ('checkout', 'direct'))
    ) as since
  `);
  return since ?? new Date().toISOString();
}

/**
 * From when on a restored ledger may lack what the processor has: three days before its last walk, since the walk of
 * its last moments is what is missing, or before its oldest account.
 */
export async function getRestoreStart(connection: Connection): Promise<string> {
  const since = await connection.oneFirst(sql.type(sinceRow)`
    select coalesce(
      (select walked_until from farebox.reconciliation),
      (select min(created_at) from farebox.accounts)
    ) - interval '3 days' as since
  `);
  return since ?? new Date().toISOString();
}

/** Records how far the comparison got, never later than now, even if the caller says so. */
export async function recordWalk(connection: Connection, walkedUntil: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.reconciliation (walked_until) values (least(${walkedUntil}::timestamptz, now()))
    on conflict (is_only) do update
    set walked_until = greatest(least(reconciliation.walked_until, now()), excluded.walked_until)
  `);
}

/**
 * Our top-ups, by id, about which Stripe may know more than we do and which a walk of its records would not show:
 * disputed, with a refund to be made, pending although Stripe reported how they ended or the payer's 24 hours
 * are over, or ended without stored evidence. Top-ups that Stripe reported as expired or failed are final and
 * not checked again.
 */
export async function listUnsettled(
  connection: Connection,
  page: { readonly afterId: string; readonly limit: number },
): Promise<readonly string[]> {
  return connection.anyFirst(sql.type(idRow)`
    select id from (
      select id from farebox.top_ups
      where id > ${page.afterId} and opened_at is not null
        and status in ('pending', 'disputed')
        and (status = 'disputed' or session_id is null and authentication_asked_at is null
          or seen_verdict is not null
          or coalesce(session_expires_at, created_at + interval '24 hours') < now())
      union
      select id from farebox.top_ups
      where id > ${page.afterId} and opened_at is not null
        and status in ('expired', 'failed') and seen_verdict is null and updated_at > now() - interval '30 days'
      union
      select top_up_id from farebox.reversals
      where top_up_id > ${page.afterId} and status = 'requested'
    ) unsettled
    order by id limit ${page.limit}
  `);
}

const BOOKED = sql.fragment`
  select t.id as "topUpId", t.amount_micros as "amountMicros", t.payment_intent_id as "paymentIntentId",
    t.is_taxed as "isTaxed", t.tax_micros as "taxMicros", coalesce(sum(m.amount_micros), 0)::int8 as "creditedMicros"
  from farebox.top_ups t left join farebox.movements m
    on m.ledger = t.ledger and m.top_up_id = t.id and m.kind = 'top_up'
`;

/** By what the key of a top-up will be: a key of all of it lets a statement name its other columns. */
const BY_TOP_UP = sql.fragment`group by t.ledger, t.consumer_id, t.id`;

/** The top-ups that objects at Stripe may refer to, by their own ids or by the ids of their payments. */
export async function findBooked(
  connection: Connection,
  topUpIds: readonly string[],
  paymentIntentIds: readonly string[],
): Promise<readonly Booked[]> {
  return connection.any(sql.type(bookedRow)`
    ${BOOKED}
    where t.id = any(${sql.array(topUpIds, 'uuid')})
      or t.payment_intent_id = any(${sql.array(paymentIntentIds, 'text')})
    ${BY_TOP_UP}
  `);
}

/** Every credited top-up that Stripe must know, from this UUID on: all except manual ones. */
export async function listBookedThroughProcessor(
  connection: Connection,
  idMin: string,
): Promise<readonly Booked[]> {
  return connection.any(sql.type(bookedRow)`
    ${BOOKED} where t.id >= ${idMin} and t.method in ('checkout', 'direct') and m.id is not null ${BY_TOP_UP}
  `);
}

export async function listClaims(
  connection: Connection,
  topUpIds: readonly string[],
): Promise<readonly Claim[]> {
  return connection.any(sql.type(claimRow)`
    select top_up_id as "topUpId", coalesce(processor_id, id::text) as "processorId", status,
      coalesce(gross_micros, amount_micros) as "grossMicros", dismissed_at is not null as "isDismissed"
    from farebox.reversals
    where top_up_id = any(${sql.array(topUpIds, 'uuid')})
      and (status not in ('failed', 'won') or dismissed_at is not null)
      and (processor_id is not null or created_at < now() - interval '10 minutes')
  `);
}

/** Replaces the differences of a top-up. Those that remain keep their time. */
export async function recordDifferences(
  database: Database,
  topUpId: string,
  differences: readonly Omit<Difference, 'topUpId' | 'creditedPaymentIntentId' | 'since'>[],
): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.query(sql.typeAlias('nothing')`
      delete from farebox.differences where top_up_id = ${topUpId}
        and kind <> all(${sql.array(
          differences.map(({ kind }) => kind),
          'text',
        )})
    `);
    for (const { kind, processorMicros, ledgerMicros, paymentIntentIds } of differences) {
      await tx.query(sql.typeAlias('nothing')`
        insert into farebox.differences
          (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
        values (${topUpId}, ${kind}, ${processorMicros}, ${ledgerMicros},
          ${sql.array(paymentIntentIds, 'text')})
        on conflict (top_up_id, kind) do update
        set processor_micros = excluded.processor_micros, ledger_micros = excluded.ledger_micros,
          payment_intent_ids = excluded.payment_intent_ids
      `);
    }
  });
}

const columns = sql.fragment`
  top_up_id as "topUpId", kind, processor_micros as "processorMicros",
  ledger_micros as "ledgerMicros", payment_intent_ids as "paymentIntentIds", since,
  (select t.payment_intent_id from farebox.top_ups t
    where t.id = top_up_id and t.completed_at is not null) as "creditedPaymentIntentId"
`;

/** Without settled ones, the oldest first: all of them, or at most `limit`. */
export async function listDifferences(
  connection: Connection,
  limit: number | null = null,
): Promise<readonly Difference[]> {
  return connection.any(sql.type(differenceRow)`
    select ${columns} from ${OPEN_DIFFERENCES} order by since, top_up_id, kind limit ${limit}
  `);
}

/** Settled ones too. */
export async function listDifferencesOf(
  connection: Connection,
  topUpId: string,
): Promise<readonly Difference[]> {
  return connection.any(sql.type(differenceRow)`
    select ${columns} from farebox.differences where top_up_id = ${topUpId}
  `);
}

/** Top-ups that differ, by id, after `afterId`. */
export async function listDiffering(
  connection: Connection,
  page: { readonly afterId: string; readonly limit: number },
): Promise<readonly string[]> {
  return connection.anyFirst(sql.type(idRow)`
    select distinct top_up_id as id from farebox.differences
    where top_up_id > ${page.afterId} order by id limit ${page.limit}
  `);
}

export const RECONCILED_CHECK = 'the last complete reconciliation is recent';

/**
 * Reports a reconciliation that was due an hour ago and has not ended. None is due until the first top-up is that old.
 */
export async function checkReconciliation(
  connection: Connection,
  everySeconds: number,
): Promise<Offender[]> {
  const late = await connection.any(sql.type(lateRow)`
    select 'ended at ' || coalesce(walked_until::text, 'no time') as detail
    from (values (now() - make_interval(secs => ${everySeconds + 3_600}))) as due (at)
    left join farebox.reconciliation on true
    where coalesce(walked_until, '-infinity') < at and exists (
      select from farebox.top_ups where method in ('checkout', 'direct') and created_at < at
    )
  `);
  return late.map(({ detail }) => ({ subject: 'the last reconciliation', detail }));
}
