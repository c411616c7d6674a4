/**
 * Sums up the charges of a month that is to be archived, in steps of some thousand charges. Each is a transaction of
 * its own, which adds to tables that nobody reads and notes how far it came. So none keeps vacuum from the busy tables
 * for long, and a run continues one that was killed. At the end, `moveSumsToLedger` adds them to the ledger.
 */
import { Type } from 'typebox';
import { NIL_UUID } from '../../domain/ids.ts';
import { row, sql, type Database, type Fragment, type Transaction } from '../database.ts';
import { paidByTopUps } from '../earnings/top-up-attribution.ts';
import { waitLong } from '../long-transaction.ts';
import { lockArchive } from './archived.ts';
import { isOfKey, spendKeyOf } from './charge-origin.ts';

/** Takes a fraction of a second. */
export const CHARGES_PER_STEP = 20_000;

/** A closed month: the name of its partition, and its first day as an SQL date. */
export interface ClosedMonth {
  readonly name: string;
  readonly day: Fragment;
}

/**
 * Later, sums are made anew: a charge may have been repaired by hand meanwhile, and a new release may keep other
 * sums.
 */
const SUMS_LAST = sql.fragment`interval '1 day'`;

const countRow = row(Type.Object({ charges: Type.Integer() }));
const wholeRow = row(Type.Object({ begunAt: Type.Union([Type.String(), Type.Null()]) }));
const sameRunRow = row(Type.Object({ isSameRun: Type.Boolean() }));
/** The amount as text: the sum of all accounts may be more than the largest safe integer. */
const archivedRow = row(Type.Object({ charges: Type.Integer(), amountMicros: Type.String() }));

const KEPT = [
  'archived_charges',
  'archived_spending',
  'archived_attribution',
  'archived_key_spending',
] as const;
type Kept = (typeof KEPT)[number];

const stagedTable = (name: Kept | 'archived_months') =>
  sql.identifier(['farebox_moving', `${name}_so_far`]);
/** The month, how many of its charges were summed up, and the last one of these in the order of the primary key. */
const progress = stagedTable('archived_months');

/**
 * Sums up what is left of the month. Any number of processes may do this at once: they take turns. Returns when the
 * sums were begun, for `isSameRun`.
 */
export async function sumUp(
  database: Database,
  month: ClosedMonth,
  chargesPerStep: number,
): Promise<string> {
  for (;;) {
    await begin(database, month);
    while ((await sumUpStep(database, month, chargesPerStep)) === chargesPerStep);
    // Unless somebody changed the month since: then again, from its beginning.
    const begunAt = await findWhole(database, month);
    if (begunAt !== null) return begunAt;
  }
}

/** Whether the sums are those begun then. Otherwise another command found them old meanwhile, and began again. */
export async function isSameRun(
  tx: Transaction,
  { day }: ClosedMonth,
  begunAt: string,
): Promise<boolean> {
  await takeTurn(tx);
  return tx.oneFirst(sql.type(sameRunRow)`
    select exists (
      select from ${progress} where month = ${day} and begun_at::text = ${begunAt}
    ) as "isSameRun"
  `);
}

/** Continues an earlier run for this month. Drops what a run for another month left, and sums that are out of date. */
async function begin(database: Database, { day }: ClosedMonth): Promise<void> {
  await database.transaction(async (tx) => {
    await lockArchive(tx);
    // With keys, or a publication for all tables would refuse to delete from them.
    await tx.query(sql.typeAlias('nothing')`
      create table if not exists ${progress} (
        month date primary key, charges bigint not null, amount_micros numeric not null,
        ledger smallint not null, consumer_id uuid not null, id uuid not null, begun_at timestamptz not null default now()
      )
    `);
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      select from ${progress} where month = ${day} and begun_at > now() - ${SUMS_LAST}
    `);
    if (rowCount > 0) return;
    await tx.query(sql.typeAlias('nothing')`delete from ${progress}`);
    for (const name of KEPT) {
      await tx.query(sql.typeAlias('nothing')`drop table if exists ${stagedTable(name)}`);
      await tx.query(sql.typeAlias('nothing')`
        create table ${stagedTable(name)} (like ${sql.identifier(['farebox', name])} including all)
      `);
    }
    await tx.query(sql.typeAlias('nothing')`
      insert into ${progress} (month, charges, amount_micros, ledger, consumer_id, id) values (${day}, 0, 0, -1,
        ${NIL_UUID}, ${NIL_UUID})
    `);
  });
}

/**
 * Taken before the month's table is locked, so that a process that archives the month waits for this transaction, or
 * makes it wait here. The next statement sees what others did meanwhile.
 */
function takeTurn(tx: Transaction): Promise<void> {
  return waitLong(tx, sql.fragment`select from ${progress} for update`);
}

/** Returns the number of its charges; 0 when none is left. Refunds are not counted: they keep their own rows. */
async function sumUpStep(
  database: Database,
  { name, day }: ClosedMonth,
  chargesPerStep: number,
): Promise<number> {
  return database.transaction(async (tx) => {
    await takeTurn(tx);
    return tx.oneFirst(sql.type(countRow)`
      with part as materialized (
        select c.* from ${progress} p cross join lateral (
          select ledger, consumer_id, id, developer, tool, origin, spent_micros, amount_micros
          from ${sql.identifier(['farebox', name])}
          where (ledger, consumer_id, id) > (p.ledger, p.consumer_id, p.id)
          order by ledger, consumer_id, id limit ${chargesPerStep}
        ) c
        where p.month = ${day}
      ), charges as (
        insert into ${stagedTable('archived_charges')} as a
          (ledger, consumer_id, month, developer, tool, charges, amount_micros)
        select ledger, consumer_id, ${day}, developer, tool, count(*), sum(amount_micros)
        from part group by 1, 2, 4, 5
        on conflict (ledger, consumer_id, month, developer, tool) do update
          set charges = a.charges + excluded.charges, amount_micros = a.amount_micros + excluded.amount_micros
      ), spending as (
        insert into ${stagedTable('archived_spending')} as a (ledger, consumer_id, stretches)
        select ledger, consumer_id, range_agg(int8range(spent_micros - amount_micros, spent_micros))
        from part group by 1, 2
        on conflict (ledger, consumer_id) do update set stretches = a.stretches + excluded.stretches
      ), attribution as (
        insert into ${stagedTable('archived_attribution')} as a (ledger, developer, top_up_id, micros, charges)
        select ledger, developer, top_up_id, sum(micros), sum(charges)
        from (${paidByTopUps(sql.fragment`
          select ledger, consumer_id, developer, spent_micros, amount_micros, 1 as sign from part
        `)}) w group by 1, 2, 3
        on conflict (developer, top_up_id, ledger) do update
          set micros = a.micros + excluded.micros, charges = a.charges + excluded.charges
      ), key_spending as (
        insert into ${stagedTable('archived_key_spending')} as a (ledger, consumer_id, spend_key, micros)
        select ledger, consumer_id, ${spendKeyOf('part')}, sum(amount_micros)
        from part where ${isOfKey('part')} group by 1, 2, 3
        on conflict (ledger, consumer_id, spend_key) do update set micros = a.micros + excluded.micros
      ), last as (
        select ledger, consumer_id, id from part order by ledger desc, consumer_id desc, id desc limit 1
      ), noted as (
        update ${progress} p set charges = p.charges + s.charges, amount_micros = p.amount_micros + s.micros,
          ledger = last.ledger, consumer_id = last.consumer_id, id = last.id
        from last, (select count(*) as charges, sum(amount_micros) as micros from part) s
      )
      select count(*) as charges from part
    `);
  });
}

/** When the sums were begun, if they are of the charges that are there now. Otherwise they are dropped. */
async function findWhole(database: Database, { name }: ClosedMonth): Promise<string | null> {
  return database.transaction(async (tx) => {
    await takeTurn(tx);
    const begunAt = await tx.oneFirst(sql.type(wholeRow)`
      select (
        select begun_at::text from ${progress} where (charges, amount_micros)
          = (select count(*), coalesce(sum(amount_micros), 0) from ${sql.identifier(['farebox', name])})
      ) as "begunAt"
    `);
    if (begunAt === null) await tx.query(sql.typeAlias('nothing')`delete from ${progress}`);
    return begunAt;
  });
}

/** Adds the sums of the month to the ledger, in the transaction that takes its charges out, and drops the tables. */
export async function moveSumsToLedger(tx: Transaction, { day }: ClosedMonth) {
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_charges select * from ${stagedTable('archived_charges')}
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_spending as a select * from ${stagedTable('archived_spending')}
    on conflict on constraint archived_spending_pkey do update
      set stretches = a.stretches + excluded.stretches
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_attribution as a select * from ${stagedTable('archived_attribution')}
    on conflict on constraint archived_attribution_pkey do update
      set micros = a.micros + excluded.micros, charges = a.charges + excluded.charges
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_key_spending as a select * from ${stagedTable('archived_key_spending')}
    on conflict on constraint archived_key_spending_pkey do update set micros = a.micros + excluded.micros
  `);
  const archived = await tx.one(sql.type(archivedRow)`
    insert into farebox.archived_months (month, charges, amount_micros)
    select month, charges, amount_micros from ${progress} where month = ${day}
    returning charges, amount_micros::text as "amountMicros"
  `);
  for (const table of [progress, ...KEPT.map(stagedTable)]) {
    await tx.query(sql.typeAlias('nothing')`drop table ${table}`);
  }
  return archived;
}
