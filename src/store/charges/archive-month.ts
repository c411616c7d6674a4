/**
 * Archives a closed month: its partition of charges is detached and moved to the schema farebox_archive, and what reads
 * and doctor need of these charges is kept as sums. The holds of earlier months move too. First the charges are summed
 * up in steps. Then one transaction, beside traffic, changes everything: charges and holds wait only for the detaching,
 * which reads nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Type } from 'typebox';
import { DAY_MS } from '../../domain/durations.ts';
import { uuidFloor } from '../../domain/ids.ts';
import { row, sql, timestampOf, type Database, type Transaction } from '../database.ts';
import { isLockTimeout, isTableMissing } from '../failures.ts';
import {
  archiveLeases,
  findUnsettled,
  listOldPartitions,
  type UnsettledHolds,
} from '../holds/archive-holds.ts';
import { allowLongStatements, withLockTimeout } from '../long-transaction.ts';
import { lockArchive } from './archived.ts';
import { monthTable } from './month-partition.ts';
import {
  CHARGES_PER_STEP,
  isSameRun,
  moveSumsToLedger,
  sumUp,
  type ClosedMonth,
} from './sum-up-month.ts';

/** Idempotency keys are looked up among the charges of 62 days, and usage by day is read for 100; clocks may differ. */
const CLOSED_FOR_MS = 101 * DAY_MS;
/** Waiting for the lock blocks charges, so the wait is short and is retried. */
const LOCK_TIMEOUT_MS = 300;
const ATTEMPTS = 10;
const RETRY_MS = 500;
/** How long a vacuum of the month may take. */
const VACUUM_WAIT_MS = 600_000;

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

const nameRow = row(Type.Object({ month: Type.String() }));
const unsettledRow = row(Type.Object({ rest: Type.Boolean(), tail: Type.Boolean() }));

/** `month` as YYYY-MM. */
export async function archiveMonth(
  database: Database,
  month: string,
  nowMs: number,
  chargesPerStep = CHARGES_PER_STEP,
): Promise<ArchiveResult> {
  const fromMs = Date.parse(`${month}-01T00:00:00Z`);
  const begins = new Date(fromMs);
  const toMs = Date.UTC(begins.getUTCFullYear(), begins.getUTCMonth() + 1);
  if (nowMs < toMs + CLOSED_FOR_MS) {
    return { kind: 'not_closed', from: new Date(toMs + CLOSED_FOR_MS).toISOString() };
  }
  const closed = {
    name: monthTable('charges', fromMs),
    day: sql.fragment`(${timestampOf(fromMs)} at time zone 'UTC')::date`,
  };
  const refuse = () =>
    database.transaction(async (tx) => {
      await allowLongStatements(tx);
      return findRefusal(tx, month, fromMs, toMs);
    });
  const refusal = await refuse();
  if (refusal) return refusal;
  for (;;) {
    let begunAt: string;
    try {
      begunAt = await sumUp(database, closed, chargesPerStep);
    } catch (error) {
      // Another command has archived the month meanwhile, so its table is elsewhere.
      if (isTableMissing(error)) return (await refuse()) ?? { kind: 'busy' };
      throw error;
    }
    const result = await moveMonth(database, { ...closed, month, fromMs, toMs }, begunAt);
    if (result) return result;
  }
}

/** Undefined: the month has to be summed up again. */
async function moveMonth(
  database: Database,
  closed: ClosedMonth & {
    readonly month: string;
    readonly fromMs: number;
    readonly toMs: number;
  },
  begunAt: string,
): Promise<ArchiveResult | undefined> {
  const { month, fromMs, toMs } = closed;
  return database
    .transaction(async (tx): Promise<ArchiveResult | undefined> => {
      await lockArchive(tx);
      // Again, because another command may have archived it meanwhile.
      const late = await findRefusal(tx, month, fromMs, toMs);
      if (late) return late;
      if (!(await isSameRun(tx, closed, begunAt))) return undefined;
      const holds = await listOldPartitions(tx, fromMs);
      await keepVacuumAway(tx, [...holds, closed.name]);
      const { charges, amountMicros } = await moveSumsToLedger(tx, closed);
      await forgetMinutes(tx, fromMs, toMs);
      const leases = await archiveLeases(tx, fromMs);
      await detach(tx, closed.name, holds);
      return {
        kind: 'archived',
        charges,
        amountMicros: BigInt(amountMicros),
        table: `farebox_archive.${closed.name}`,
        toMs,
        holdTables: [...holds, ...leases].map((each) => `farebox_archive.${each}`),
      };
    })
    .catch((error: unknown): ArchiveResult => {
      if (isLockTimeout(error)) return { kind: 'busy' };
      throw error;
    });
}

/** Undefined: the month can be archived now. */
async function findRefusal(
  tx: Transaction,
  month: string,
  fromMs: number,
  toMs: number,
): Promise<ArchiveResult | undefined> {
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
  const what = await findUnsettled(tx, await listOldPartitions(tx, fromMs), fromMs);
  return what && { kind: 'unsettled', what };
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
  await withLockTimeout(tx, VACUUM_WAIT_MS, async () => {
    for (const name of partitions) {
      await tx.query(sql.typeAlias('nothing')`
        lock table ${sql.identifier(['farebox', name])} in share update exclusive mode
      `);
    }
  });
}

/** The minutes by which lists find the charges of a tool. */
async function forgetMinutes(tx: Transaction, fromMs: number, toMs: number): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.earnings set charged_minutes = 0
    where span = 'hour' and charged_minutes <> 0
      and begins_at >= ${timestampOf(fromMs)} and begins_at < ${timestampOf(toMs)}
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
