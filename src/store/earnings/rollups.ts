/**
 * Rollups move the rows that charges left in the tails into sums. A step deletes rows and adds them to the sums in
 * one transaction, so each row counts once, regardless of the order of commits and of crashes.
 */
import { Type } from 'typebox';
import { ARCHIVED_BEFORE, lockArchive } from '../charges/archived.ts';
import { type Connection, type Database, type Fragment, row, sql } from '../database.ts';
import { KEY_SPANS, SPENT_BY_BUDGETS, SPENT_BY_KEYS } from '../budgets/usage.ts';
import { spentByFlushes, waitingSpending } from '../budgets/waiting-spending.ts';
import { EARNED, SPANS } from './earnings.ts';
import { cutByLots, PAID_BY_TOP_UPS } from './top-up-attribution.ts';

/**
 * Rows per step: about a second of work at most. What rows share is written once per step, so the sums of a
 * spend key that is charged often cost little; a step of keys that are charged once ends after fewer of them.
 * A flush with spend keys is one row of many charges, so those flushes are also limited by their charges: the
 * flush that reaches `SPENDS_PER_STEP` is the last. Few large steps cost less than many small ones: with
 * 10,000 keys, steps half as large write almost twice as many sums. What top-ups paid to developers costs more
 * for each charge: 30,000 charges to as many consumers take two seconds.
 */
const EARNINGS_PER_STEP = 30_000;
const KEYS_PER_STEP = 10_000;
const SPENDS_PER_STEP = 200_000;
const ATTRIBUTED_PER_STEP = 30_000;
const FLUSHES_PER_STEP = 4_000;

/** Steps share this lock, a rebuild holds it alone: no row may move between the rebuild's read and its commit. */
const LOCK = sql.fragment`hashtext('farebox.rollups')`;

/** Far more rows than arrive between two runs of the schedule. Reading this many takes a tenth of a second. */
const EARNINGS_LONG = 50_000;
const FLUSHES_LONG = 1_000;

const isLongRow = row(Type.Object({ isLong: Type.Boolean() }));
const isFreeRow = row(Type.Object({ isFree: Type.Boolean() }));
const stepRow = row(Type.Object({ moved: Type.Integer(), hasMore: Type.Boolean() }));

export interface RollupStep {
  /** Rows taken from the tails. */
  readonly moved: number;
  /** Whether the tails may have more rows. */
  readonly hasMore: boolean;
}

/** One bounded step. Any number can run concurrently: each skips the rows that others have locked. */
export async function rollUp(database: Database): Promise<RollupStep> {
  return database.transaction(async (tx) => {
    const isFree = await tx.oneFirst(sql.type(isFreeRow)`
      select pg_try_advisory_xact_lock_shared(${LOCK}) as "isFree"
    `);
    if (!isFree) return { moved: 0, hasMore: false };
    const earnings = await moveEarnings(tx);
    const flushes = await moveAttribution(tx);
    return {
      moved: earnings.moved + flushes.moved,
      hasMore: earnings.hasMore || flushes.hasMore,
    };
  });
}

/** The first of these flushes, by their ids: the one that reaches this many charges is the last. */
function firstFlushes(found: Fragment, charges: number) {
  return sql.fragment`
    select * from (
      select *, sum(charges) over (order by id) - charges as earlier from ${found}
    ) u where earlier < ${charges}
  `;
}

/** Sums are written in the order of their keys, so concurrent steps wait for each other without deadlocks. */
async function moveEarnings(tx: Connection): Promise<RollupStep> {
  return tx.one(sql.type(stepRow)`
    with found as materialized (
      select ctid as place, consumer_id, spend_key from farebox.earnings_tail
      limit ${EARNINGS_PER_STEP} for update skip locked
    ), taken as (
      delete from farebox.earnings_tail where ctid = any (array(
        select place from (
          select place, consumer_id, dense_rank() over (order by consumer_id, spend_key) as key from found
        ) f where consumer_id is null or key <= ${KEYS_PER_STEP}
      ))
      returning ledger, developer, tool, minute, amount_micros, charges, consumer_id, spend_key
    ), found_flushes as materialized (
      select *, cardinality(amounts) as charges from farebox.key_spending_tail
      order by id limit ${FLUSHES_PER_STEP} for update skip locked
    ), flushes as materialized (
      ${firstFlushes(sql.fragment`found_flushes`, SPENDS_PER_STEP)}
    ), spends as materialized (
      ${spentByFlushes(sql.fragment`flushes`)}
    ), too_many as (
      select min(flush) as flush from (
        select flush, sum(count(*)) over (order by flush) as keys from (
          select min(flush) as flush from spends group by ledger, consumer_id, spend_key
        ) n group by flush
      ) k where keys > ${KEYS_PER_STEP}
    ), taken_flushes as (
      delete from farebox.key_spending_tail t using flushes f, too_many m
      where t.id = f.id and t.ledger = f.ledger and (m.flush is null or f.id < m.flush)
      returning t.id
    ), earned as (
      select developer, tool, minute, sum(amount_micros) as amount_micros, sum(charges) as charges
      from taken group by 1, 2, 3
    ), added as (
      insert into farebox.earnings as e
        (developer, span, tool, begins_at, amount_micros, charges, charged_minutes)
      select developer, span, tool, begins_at, sum(amount_micros), sum(charges), bit_or(charged_minutes)
      from earned cross join lateral ${SPANS}
      group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict on constraint earnings_pkey do update
        set amount_micros = e.amount_micros + excluded.amount_micros,
          charges = e.charges + excluded.charges,
          charged_minutes = e.charged_minutes | excluded.charged_minutes
    ), spent as (
      insert into farebox.key_spending as e
        (ledger, consumer_id, spend_key, span, begins_at, developer, tool, amount_micros, charges)
      select ledger, consumer_id, spend_key, span, begins_at, developer, tool, sum(amount_micros), sum(charges)
      from (
        select ledger, consumer_id, spend_key, developer, tool, minute, sum(amount_micros) as amount_micros,
          sum(charges) as charges
        from (
          select ledger, consumer_id, spend_key, developer, tool, minute, amount_micros, charges
          from taken where consumer_id is not null
          union all
          select ledger, consumer_id, spend_key, developer, tool, minute, amount_micros, 1
          from spends, too_many m where m.flush is null or spends.flush < m.flush
        ) w group by 1, 2, 3, 4, 5, 6
      ) t cross join lateral ${KEY_SPANS}
      group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 4, 5, 6, 7
      on conflict on constraint key_spending_pkey do update
        set amount_micros = e.amount_micros + excluded.amount_micros, charges = e.charges + excluded.charges
    ), moved as (
      select (select count(*) from taken) as earnings, (select count(*) from taken_flushes) as flushes
    )
    select earnings + flushes as moved,
      earnings = ${EARNINGS_PER_STEP} or earnings < (select count(*) from found)
        or flushes = ${FLUSHES_PER_STEP} or flushes < (select count(*) from found_flushes) as "hasMore"
    from moved
  `);
}

async function moveAttribution(tx: Connection): Promise<RollupStep> {
  return tx.one(sql.type(stepRow)`
    with found as materialized (
      select id, cardinality(amounts) as charges from farebox.attribution_tail
      order by id limit ${FLUSHES_PER_STEP} for update skip locked
    ), taken as (
      delete from farebox.attribution_tail where id in (
        select id from (${firstFlushes(sql.fragment`found`, ATTRIBUTED_PER_STEP)}) f
      )
      returning *
    ), added as (
      insert into farebox.top_up_earnings as e (ledger, developer, top_up_id, charged_micros, charges)
      select ledger, developer, top_up_id, sum(micros), sum(charges)
      from (${cutByLots(sql.fragment`taken`)}) paid
      group by 1, 2, 3 order by 2, 3
      on conflict on constraint top_up_earnings_pkey do update
        set charged_micros = e.charged_micros + excluded.charged_micros,
          charges = e.charges + excluded.charges
    )
    select moved, moved = ${FLUSHES_PER_STEP} or moved < (select count(*) from found) as "hasMore"
    from (select count(*) as moved from taken) t
  `);
}

/** Whether the tails are so long that no rollup can have run for a while. */
export async function areTailsLong(connection: Connection): Promise<boolean> {
  return connection.oneFirst(sql.type(isLongRow)`
    select (select count(*) from (select from farebox.earnings_tail limit ${EARNINGS_LONG}) e)
        = ${EARNINGS_LONG}
      or (select count(*) from (select from farebox.attribution_tail limit ${FLUSHES_LONG}) a)
        = ${FLUSHES_LONG}
      or (select count(*) from (select from farebox.key_spending_tail limit ${FLUSHES_LONG}) s)
        = ${FLUSHES_LONG} as "isLong"
  `);
}

/**
 * Rebuilds all sums from the charges, without the rows that are still in the tails, which stay there. Readers see the
 * old sums until it commits. Rollups pause meanwhile, charges do not. Reads every charge.
 */
export async function rebuildRollups(database: Database): Promise<void> {
  await database.transaction(async (tx) => {
    // Otherwise the sums of a month could be deleted here, and its charges be archived before the new sums
    // are made of them.
    await lockArchive(tx);
    await tx.query(sql.typeAlias('nothing')`select pg_advisory_xact_lock(${LOCK})`);
    await rebuildEarnings(tx);
    await rebuildKeySpending(tx);
    await rebuildBudgetSpending(tx);
    await rebuildAttribution(tx);
  });
}

/**
 * Keeps the sums of archived months, whose charges are gone. They contain nothing of the tail, not even a
 * refund that a clock that was behind dated in such a month.
 */
async function rebuildEarnings(tx: Connection): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    delete from farebox.earnings where span = 'all' or begins_at >= ${ARCHIVED_BEFORE}
  `);
  await tx.query(sql.typeAlias('nothing')`
    with minutes as (
      select developer, tool, minute, sum(amount_micros) as micros, sum(charges) as charges
      from (
        ${EARNED}
        union all
        select developer, tool, minute, -amount_micros, -charges from farebox.earnings_tail
        where minute >= ${ARCHIVED_BEFORE}
      ) e group by 1, 2, 3
    )
    insert into farebox.earnings
      (developer, span, tool, begins_at, amount_micros, charges, charged_minutes)
    select developer, span, tool, begins_at, sum(micros), sum(charges), bit_or(charged_minutes)
    from (
      select developer, s.span, tool, s.begins_at, micros, charges, s.charged_minutes
      from minutes cross join lateral ${SPANS} where micros <> 0 or charges <> 0
      union all
      select developer, 'all', tool, '-infinity', amount_micros, charges, 0 from farebox.earnings
      where span = 'day' and begins_at < ${ARCHIVED_BEFORE}
    ) e group by 1, 2, 3, 4
  `);
}

/** Keeps the sums of archived months, too. */
async function rebuildKeySpending(tx: Connection): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    delete from farebox.key_spending where span = 'all' or begins_at >= ${ARCHIVED_BEFORE}
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.key_spending
      (ledger, consumer_id, spend_key, span, begins_at, developer, tool, amount_micros, charges)
    select ledger, consumer_id, spend_key, span, begins_at, developer, tool, sum(amount_micros), sum(charges)
    from (
      select e.*, s.span, s.begins_at from (
        ${SPENT_BY_KEYS}
        union all
        select ledger, consumer_id, spend_key, developer, tool, minute, -amount_micros, -charges
        from (${waitingSpending()}) w where minute >= ${ARCHIVED_BEFORE}
      ) e cross join lateral ${KEY_SPANS}
      union all
      select ledger, consumer_id, spend_key, developer, tool, begins_at, amount_micros, charges, 'all', '-infinity'
      from farebox.key_spending where span = 'day' and begins_at < ${ARCHIVED_BEFORE}
    ) e group by 1, 2, 3, 4, 5, 6, 7 having sum(amount_micros) <> 0 or sum(charges) <> 0
  `);
}

/** A trigger has kept these in step with the sums of keys. They are rebuilt in case they were wrong before. */
async function rebuildBudgetSpending(tx: Connection): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`delete from farebox.budget_spending`);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.budget_spending
      (ledger, consumer_id, budget, grouped_by, span, begins_at, mark, amount_micros, charges)
    select ledger, consumer_id, budget, grouped_by, span, begins_at, mark, sum(amount_micros), sum(charges)
    from (${SPENT_BY_BUDGETS}) s group by 1, 2, 3, 4, 5, 6, 7
    having sum(amount_micros) <> 0 or sum(charges) <> 0
  `);
}

async function rebuildAttribution(tx: Connection): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`delete from farebox.top_up_earnings`);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.top_up_earnings (ledger, developer, top_up_id, charged_micros, charges)
    select ledger, developer, top_up_id, sum(micros), sum(charges)
    from (
      ${PAID_BY_TOP_UPS}
      union all
      select ledger, developer, top_up_id, -micros, -charges
      from (${cutByLots(sql.fragment`farebox.attribution_tail`)}) waiting
    ) p group by 1, 2, 3 having sum(micros) <> 0 or sum(charges) <> 0
  `);
}
