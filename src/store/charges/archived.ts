/**
 * What is known of archived charges (archive-month.ts): when the archived time ends, and what a consumer spent in it by
 * month. The charges themselves are no longer in the ledger.
 */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  timestampOf,
  type Connection,
  type Transaction,
} from '../database.ts';
import { waitLong } from '../long-transaction.ts';

/** The end of the archived time; -infinity when no month is archived. */
export const ARCHIVED_BEFORE = sql.fragment`coalesce(
  (select (max(month) + interval '1 month')::timestamp at time zone 'UTC' from farebox.archived_months),
  '-infinity'::timestamptz
)`;

/** For transactions in which the end of the archived time must not move, and for the one that moves it. */
const ARCHIVE_LOCK = sql.fragment`hashtext('farebox.archive')`;

/** Waits as long as an archive or a rebuild of another command takes. */
export function lockArchive(tx: Transaction): Promise<void> {
  return waitLong(tx, sql.fragment`select pg_advisory_xact_lock(${ARCHIVE_LOCK})`);
}

const clockRow = row(Type.Object({ nowMs: Type.Integer(), archivedBeforeMs: Type.Integer() }));
const endRow = row(Type.Object({ endMs: nullable(Type.Integer()) }));
const sumRow = row(Type.Object({ sumMicros: micros }));

/** The end of the archived time in milliseconds since 1970; 0 when no month is archived. */
export async function readArchivedBefore(connection: Connection): Promise<number> {
  const endMs = await connection.oneFirst(sql.type(endRow)`
    select (extract(epoch from nullif(${ARCHIVED_BEFORE}, '-infinity')) * 1000)::int8 as "endMs"
  `);
  return endMs ?? 0;
}

/**
 * Postgres' clock with the end of the archived time, both in milliseconds since 1970; the end is 0 when no
 * month is archived.
 */
export function readClockAndArchive(
  connection: Connection,
): Promise<{ readonly nowMs: number; readonly archivedBeforeMs: number }> {
  return connection.one(sql.type(clockRow)`
    select floor(extract(epoch from clock_timestamp()) * 1000)::int8 as "nowMs",
      coalesce(extract(epoch from nullif(${ARCHIVED_BEFORE}, '-infinity')) * 1000, 0)::int8 as "archivedBeforeMs"
  `);
}

/** A consumer's archived charges of the months that begin before `timeMs`, or of all; for one tool, or for all. */
export async function sumArchivedCharges(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  { timeMs, tool }: { readonly timeMs?: number; readonly tool?: string },
): Promise<Micros> {
  return connection.oneFirst(sql.type(sumRow)`
    select coalesce(sum(amount_micros), 0)::int8 as "sumMicros" from farebox.archived_charges
    where ledger = ${ledger} and consumer_id = ${consumerId} and ${sql.and([
      timeMs !== undefined && sql.fragment`month < (${timestampOf(timeMs)} at time zone 'UTC')`,
      tool !== undefined && sql.fragment`tool = ${tool}`,
    ])}
  `);
}
