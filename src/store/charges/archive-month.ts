/**
 * Archives a closed month: its partition of charges is detached and moved to the schema farebox_archive, and what reads
 * and doctor need of these charges is kept as sums. The holds of earlier months move too. One transaction,
 * beside traffic: charges and holds wait only for the detaching, which reads nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Type } from 'typebox';
import { DAY_MS } from '../../domain/durations.ts';
import { uuidFloor } from '../../domain/ids.ts';
import { row, sql, timestampOf, type Database, type Transaction } from '../database.ts';
import { paidByTopUps } from '../earnings/top-up-attribution.ts';
import { isLockTimeout } from '../failures.ts';
import {
  archiveLeases,
  findUnsettled,
  listOldPartitions,
  type UnsettledHolds,
} from '../holds/archive-holds.ts';
import { takesLong } from '../long-transaction.ts';
import { ARCHIVE_LOCK } from './archived.ts';
import { monthTable } from './month-partition.ts';

/** Idempotency keys are looked up among the charges of 62 days, and usage by day is read for 100; clocks may differ. */
const CLOSED_FOR_MS = 101 * DAY_MS;
/** Waiting for the lock blocks charges, so the wait is short and is retried. */
const LOCK_TIMEOUT_MS = 300;
const ATTEMPTS = 10;
const RETRY_MS = 500;
/** How long a vacuum of the month may take. */
const VACUUM_WAIT_MS = 600_000;

/** The amount as text: the sum of all accounts may be more than the largest safe integer. */
const Archived = Type.Object({ charges: Type.Integer(), amountMicros: Type.String() });

export type ArchiveResult =
  | {
      readonly kind: 'archived';
      readonly charges: number;
      readonly amountMicros: bigint;
      /** Where the charges are now. */
      readonly table: string;
      /** When the month ended. */
      readonly toMs: number;
      /** Where the holds and leases of earlier months are now. */
      readonly holdTables: readonly string[];
    }
  /** Too recent. */
  | { readonly kind: 'not_closed'; readonly from: string }
  /** Another month has to be archived first, as YYYY-MM; null: no month is left. */
  | { readonly kind: 'not_next'; readonly next: string | null }
  /** Some of its charges or holds are in a default partition, earnings are not rolled up yet, or a hold is open. */
  | {
      readonly kind: 'unsettled';
      readonly what: 'charges_rest' | 'earnings_tail' | UnsettledHolds;
    }
  /**
   * The tables of charges and holds were too busy to be locked for the moment that detaching takes, or a
   * vacuum of them took long.
   */
  | { readonly kind: 'busy' };

const archivedRow = row(Archived);
const settingRow = row(Type.Object({ setting: Type.String() }));
const nameRow = row(Type.Object({ month: Type.String() }));
const unsettledRow = row(Type.Object({ rest: Type.Boolean(), tail: Type.Boolean() }));

/** `month` as YYYY-MM. */
export async function archiveMonth(
  database: Database,
  month: string,
  nowMs: number,
): Promise<ArchiveResult> {
  const fromMs = Date.parse(`${month}-01T00:00:00Z`);
  const begins = new Date(fromMs);
  const toMs = Date.UTC(begins.getUTCFullYear(), begins.getUTCMonth() + 1);
  if (nowMs < toMs + CLOSED_FOR_MS) {
    return { kind: 'not_closed', from: new Date(toMs + CLOSED_FOR_MS).toISOString() };
  }
  return database
    .transaction(async (tx): Promise<ArchiveResult> => {
      await takesLong(tx);
      await tx.query(sql.typeAlias('nothing')`
        select pg_advisory_xact_lock(${ARCHIVE_LOCK})
      `);
      const next = await findOldestMonth(tx);
      if (next !== month) return { kind: 'not_next', next };
      const { rest, tail } = await tx.one(sql.type(unsettledRow)`
        select exists (select from farebox.charges_rest where id < ${uuidFloor(toMs)}) as rest,
          exists (select from farebox.earnings_tail where minute < ${timestampOf(toMs)})
            or exists (
              select from farebox.key_spending_tail cross join unnest(days) as d (day)
              where d.day < (${timestampOf(toMs)} at time zone 'UTC')::date
            ) as tail
      `);
      if (rest || tail) return { kind: 'unsettled', what: rest ? 'charges_rest' : 'earnings_tail' };
      const holds = await listOldPartitions(tx, fromMs);
      const what = await findUnsettled(tx, holds, fromMs);
      if (what) return { kind: 'unsettled', what };
      const name = monthTable('charges', fromMs);
      await keepVacuumAway(tx, [...holds, name]);
      const { charges, amountMicros } = await keepFigures(tx, name, fromMs, toMs);
      const leases = await archiveLeases(tx, fromMs);
      await detach(tx, name, holds);
      return {
        kind: 'archived',
        charges,
        amountMicros: BigInt(amountMicros),
        table: `farebox_archive.${name}`,
        toMs,
        holdTables: [...holds, ...leases].map((each) => `farebox_archive.${each}`),
      };
    })
    .catch((error: unknown): ArchiveResult => {
      if (isLockTimeout(error)) return { kind: 'busy' };
      throw error;
    });
}

async function findOldestMonth(tx: Transaction): Promise<string | null> {
  return tx.maybeOneFirst(sql.type(nameRow)`
    select replace(substr(c.relname, 9), '_', '-') as month
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'farebox.charges'::regclass and c.relname ~ '^charges_[0-9]{4}_[0-9]{2}$'
    order by 1 limit 1
  `);
}

/**
 * Waits for a vacuum of the partitions, and blocks the next one, because detaching does not wait as long as a
 * vacuum takes. PostgreSQL cancels an autovacuum after a second, unless it prevents wraparound. Nothing else
 * waits for this lock.
 */
async function keepVacuumAway(tx: Transaction, partitions: readonly string[]): Promise<void> {
  const usual = await tx.oneFirst(sql.type(settingRow)`
    select current_setting('lock_timeout') as setting
  `);
  const setLockTimeout = (setting: string) =>
    tx.query(sql.typeAlias('nothing')`select set_config('lock_timeout', ${setting}, true)`);
  await setLockTimeout(`${VACUUM_WAIT_MS}ms`);
  for (const name of partitions) {
    await tx.query(sql.typeAlias('nothing')`
      lock table ${sql.identifier(['farebox', name])} in share update exclusive mode
    `);
  }
  await setLockTimeout(usual);
}

/** None of them counts refunds, which keep their own rows and may still be made until the month is detached. */
async function keepFigures(tx: Transaction, name: string, fromMs: number, toMs: number) {
  const charges = sql.identifier(['farebox', name]);
  const month = sql.fragment`(${timestampOf(fromMs)} at time zone 'UTC')::date`;
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_charges
      (ledger, consumer_id, month, developer, tool, charges, amount_micros)
    select ledger, consumer_id, ${month}, developer, tool, count(*), sum(amount_micros)
    from ${charges} group by 1, 2, 4, 5
  `);
  // First what follows without a gap: range_agg keeps its input in memory, and one consumer may have most of
  // the charges.
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_spending as a (ledger, consumer_id, stretches)
    select ledger, consumer_id, range_agg(stretch) from (
      select ledger, consumer_id, int8range(min(begins), max(ends)) as stretch from (
        select *, count(*) filter (where begins is distinct from before) over (
          partition by ledger, consumer_id order by ends rows unbounded preceding) as number
        from (
          select ledger, consumer_id, spent_micros - amount_micros as begins, spent_micros as ends,
            lag(spent_micros) over (partition by ledger, consumer_id order by spent_micros) as before
          from ${charges}
        ) c
      ) c group by ledger, consumer_id, number
    ) s group by 1, 2
    on conflict on constraint archived_spending_pkey do update
      set stretches = a.stretches + excluded.stretches
  `);
  const paid = paidByTopUps(sql.fragment`
    select ledger, consumer_id, developer, spent_micros, amount_micros, 1 as sign from ${charges}
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_attribution as a (ledger, developer, top_up_id, micros, charges)
    select ledger, developer, top_up_id, sum(micros), sum(charges) from (${paid}) p group by 1, 2, 3
    on conflict on constraint archived_attribution_pkey do update
      set micros = a.micros + excluded.micros, charges = a.charges + excluded.charges
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.archived_key_spending as a (ledger, consumer_id, spend_key, micros)
    select ledger, consumer_id, substr(origin, 1, 4)::int4, sum(amount_micros)
    from ${charges} where origin <> '' and substr(origin, 1, 4)::int4 > 0
    group by 1, 2, 3
    on conflict on constraint archived_key_spending_pkey do update set micros = a.micros + excluded.micros
  `);
  // The minutes by which lists find the charges of a tool.
  await tx.query(sql.typeAlias('nothing')`
    update farebox.earnings set charged_minutes = 0
    where span = 'hour' and charged_minutes <> 0
      and begins_at >= ${timestampOf(fromMs)} and begins_at < ${timestampOf(toMs)}
  `);
  return tx.one(sql.type(archivedRow)`
    insert into farebox.archived_months (month, charges, amount_micros)
    select ${month}, count(*), coalesce(sum(amount_micros), 0) from ${charges}
    returning charges, amount_micros::text as "amountMicros"
  `);
}

/** Last, because charges wait for it. Holds first: that is the order in which a capture locks the two tables. */
async function detach(tx: Transaction, charges: string, holds: readonly string[]): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // A nested transaction is a savepoint: what was summed up is kept for the next attempt.
      await tx.transaction(async (inner) => {
        await inner.query(sql.typeAlias('nothing')`
          select set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}ms`}, true)
        `);
        for (const name of holds) await moveOut(inner, 'holds', name);
        await moveOut(inner, 'charges', charges);
      });
      return;
    } catch (error) {
      if (attempt === ATTEMPTS || !isLockTimeout(error)) throw error;
    }
    await delay(RETRY_MS);
  }
}

async function moveOut(tx: Transaction, table: 'charges' | 'holds', name: string): Promise<void> {
  const partition = sql.identifier(['farebox', name]);
  await tx.query(sql.typeAlias('nothing')`
    alter table ${sql.identifier(['farebox', table])} detach partition ${partition}
  `);
  await tx.query(sql.typeAlias('nothing')`alter table ${partition} set schema farebox_archive`);
}
