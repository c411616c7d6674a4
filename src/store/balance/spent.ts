/**
 * A consumer's spending up to an instant, from the positions of its charges on the axis of its spending: a few probes
 * of the primary key instead of a sum over all charges.
 *
 * Ids get the time of Postgres' clock when their statement is sent, before the consumer is locked, so charges that are
 * close in time may be swapped on the axis. When the instant falls among such charges, those few are added up one by
 * one.
 */
import { Type } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { ConsumerRef } from './consumers.ts';
import { row, sql, type Connection } from '../database.ts';

/**
 * Charges further apart than this are never swapped: a statement ends within 5 seconds, and no two processes' readings
 * of Postgres' clock differ by as much. Doctor checks it.
 */
export const DISORDER_MS_MAX = 60_000;

const spentRow = row(Type.Object({ spent: Type.Integer() }));

/** The sum of all charges with ids from before that time. */
export async function spentBefore(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  timeMs: number,
): Promise<Micros> {
  const own = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  const spent = await connection.oneFirst(sql.type(spentRow)`
    with next as materialized (
      select id, ${floorOf(
        sql.fragment`uuid_extract_timestamp(id) + make_interval(secs => ${DISORDER_MS_MAX / 1_000})`,
      )} as beyond
      from farebox.charges where ${own} and id >= ${uuidFloor(timeMs)} order by id limit 1
    ), later as materialized (
      -- The position at which the first later charge begins. Without a later charge, everything is earlier.
      select coalesce(
        (select min(spent_micros - amount_micros) from farebox.charges
          where ${own} and id >= (select id from next) and id < (select beyond from next)),
        (select spent_micros from farebox.consumers where ledger = ${ledger} and id = ${consumerId})
      ) as begins
    )
    select (begins + coalesce((
      select sum(amount_micros) from farebox.charges
      where ${own} and id >= ${uuidFloor(Math.max(timeMs - DISORDER_MS_MAX, 0))}
        and id < ${uuidFloor(timeMs)} and spent_micros > begins
    ), 0))::int8 as spent from later
  `);
  return asMicros(spent);
}

/** Like `uuidFloor`, for a timestamptz. */
function floorOf(time: ReturnType<typeof sql.fragment>) {
  return sql.fragment`(lpad(to_hex(floor(extract(epoch from ${time}) * 1000)::int8), 12, '0')
    || '70008000000000000000')::uuid`;
}
