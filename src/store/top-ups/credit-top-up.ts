/**
 * Credits a top-up to a balance, exactly once: the unique index `movements_top_up_once` guarantees it, despite
 * any redelivery, retry or restart.
 */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { recordAutoTopUpResult } from './auto-top-ups.ts';
import { countRow, type Database, micros, row, sql, type Transaction } from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import { repayDebts } from '../balance/debts.ts';
import { postNotice } from '../outbox.ts';
import { lockConsent } from './monthly-ceiling.ts';

export interface ManualCredit {
  readonly ledger: number;
  readonly consumerId: string;
  readonly accountId: string;
  readonly amountMicros: Micros;
}

interface Credit {
  readonly ledger: number;
  readonly consumerId: string;
  readonly topUpId: string;
  readonly amountMicros: Micros;
}

const standingRow = row(
  Type.Object({
    ledger: Type.Integer(),
    consumerId: Type.String(),
    topUpId: Type.String(),
    amountMicros: micros,
    isCredited: Type.Boolean(),
    isPaid: Type.Boolean(),
    isLate: Type.Boolean(),
  }),
);
const madeRow = row(
  Type.Object({
    ledger: Type.Integer(),
    consumerId: Type.String(),
    topUpId: Type.String(),
    amountMicros: micros,
  }),
);
const completedRow = row(Type.Object({ automatic: Type.Boolean(), isUnfinished: Type.Boolean() }));
const topUpIdRow = row(Type.Object({ topUpId: Type.String() }));

/** Credited by this call or an earlier one, or not at all, because the row has no evidence of a payment. */
export type CreditResult = 'credited' | 'credited_before' | 'not_paid';

/**
 * Credits a top-up whose row has evidence of its payment (payment-evidence.ts), in any status: an expired top-up
 * may turn out to be paid. Does not trust its caller.
 */
export async function creditTopUp(database: Database, topUpId: string): Promise<CreditResult> {
  return database.transaction(async (tx) => {
    const { isCredited, isPaid, isLate, ...credit } = await tx.one(sql.type(standingRow)`
      select ledger, consumer_id as "consumerId", id as "topUpId", amount_micros as "amountMicros",
        status not in ('pending', 'expired', 'failed') as "isCredited",
        coalesce(seen_verdict = 'paid' and seen_micros = amount_micros + tax_micros, false) as "isPaid",
        method = 'direct' and status in ('expired', 'failed') as "isLate"
      from farebox.top_ups where id = ${topUpId}
    `);
    if (isCredited) return 'credited_before';
    if (!isPaid) return 'not_paid';
    // Since it ended, others may have been admitted in its place. So its ceilings become what the month now takes.
    const month = isLate ? await lockConsent(tx, credit.consumerId) : null;
    const taken = month && month.takenMicros + credit.amountMicros;
    const takenAutomatically = month && month.takenAutomaticallyMicros + credit.amountMicros;
    const booked = await bookCredits(tx, [credit]);
    const completed = await tx.maybeOne(sql.type(completedRow)`
      update farebox.top_ups
      set status = 'completed', completed_at = now(), updated_at = now(),
        failure_code = null, failure_message = null,
        consent_ceiling_micros = greatest(consent_ceiling_micros, ${taken}::int8),
        automatic_ceiling_micros = case when automatic
          then greatest(automatic_ceiling_micros, ${takenAutomatically}::int8) end
      where id = ${topUpId} and status in ('pending', 'expired', 'failed')
      returning automatic, reversal_reported or tax_calculation_id is not null as "isUnfinished"
    `);
    // Refunds and disputes are to be read, or an invoice to be made.
    if (completed?.isUnfinished)
      await postNotice(tx, 'reversal_reported', topUpId, { ledger: credit.ledger });
    if (completed?.automatic) await recordAutoTopUpResult(tx, credit, { status: 'completed' });
    return booked.size === 1 ? 'credited' : 'credited_before';
  });
}

/**
 * Records completed top-ups with method `manual`, at most one for each consumer; the consumers must exist.
 * Returns their ids, in order.
 */
export async function creditManually(
  tx: Transaction,
  credits: readonly ManualCredit[],
): Promise<string[]> {
  if (credits.length === 0) return [];
  const made = await tx.any(sql.type(madeRow)`
    insert into farebox.top_ups
      (id, ledger, consumer_id, account_id, method, status, amount_micros, opened_at, completed_at)
    select ${newIdOf(sql.fragment`consumer_id`)}, ledger, consumer_id, account_id, 'manual', 'completed',
      amount_micros, now(), now()
    from ${sql.unnest(
      credits.map((c) => [c.ledger, c.consumerId, c.accountId, c.amountMicros]),
      ['int2', 'uuid', 'uuid', 'int8'],
    )} as t (ledger, consumer_id, account_id, amount_micros)
    returning id as "topUpId", ledger, consumer_id as "consumerId", amount_micros as "amountMicros"
  `);
  const byConsumer = new Map(made.map((topUp) => [topUp.consumerId, topUp]));
  const topUps = credits.flatMap(({ consumerId }) => byConsumer.get(consumerId) ?? []);
  await bookCredits(tx, topUps);
  return topUps.map((topUp) => topUp.topUpId);
}

/**
 * Writes the movement, lot and counter of each credit, and repays debts before any of it can be spent. Skips
 * credits that were recorded before, and returns the ids of the others.
 */
export async function bookCredits(
  tx: Transaction,
  credits: readonly Credit[],
): Promise<Set<string>> {
  if (new Set(credits.map((credit) => credit.consumerId)).size !== credits.length) {
    throw new Error('Two credits for one consumer in one call'); // one of the lots would be lost
  }
  const owners = sql.unnest(
    credits.map((credit) => [credit.ledger, credit.consumerId]),
    ['int2', 'uuid'],
  );
  // Locks first, in the order in which charges take them. The next statement has a new snapshot, so the lots
  // begin where those committed meanwhile end.
  const locked = await tx.oneFirst(sql.type(countRow)`
    with locked as (
      select from farebox.consumers
      where (ledger, id) in (select * from ${owners} as o (ledger, id))
      order by ledger, id for update
    )
    select count(*) as count from locked
  `);
  if (locked !== credits.length) throw new Error('The consumer of a credit does not exist');
  const booked = await tx.anyFirst(sql.type(topUpIdRow)`
    with booked as (
      insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id)
      -- The id has the time of Postgres: the clock of this machine may be wrong.
      select ledger, consumer_id, uuidv7(), 'top_up', amount_micros, top_up_id
      from ${sql.unnest(
        credits.map((c) => [c.ledger, c.consumerId, c.amountMicros, c.topUpId]),
        ['int2', 'uuid', 'int8', 'uuid'],
      )} as m (ledger, consumer_id, amount_micros, top_up_id)
      on conflict (ledger, top_up_id) where kind = 'top_up' do nothing
      returning ledger, consumer_id, id, amount_micros, top_up_id
    ),
    added as (
      insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
      select b.ledger, b.consumer_id, b.id, c.credited_micros, c.credited_micros + b.amount_micros,
        b.top_up_id
      from booked b join farebox.consumers c on c.ledger = b.ledger and c.id = b.consumer_id
    ),
    raised as (
      update farebox.consumers c set credited_micros = c.credited_micros + b.amount_micros
      from booked b where c.ledger = b.ledger and c.id = b.consumer_id
    )
    select top_up_id as "topUpId" from booked
  `);
  await repayDebts(tx, credits);
  return new Set(booked);
}
