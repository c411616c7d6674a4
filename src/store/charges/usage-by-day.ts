/** A consumer's spending by day, in a few statements with a few index probes per day, for any number of charges. */
import { Type } from 'typebox';
import { DAY_MS } from '../../domain/durations.ts';
import { uuidFloor } from '../../domain/ids.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { spentBeforeEach } from '../balance/spent.ts';
import { micros, row, sql, type Connection } from '../database.ts';

const refundRow = row(Type.Object({ dayMs: Type.Integer(), refundedMicros: micros }));

/** Charges less refunds for each UTC day. `fromMs` is the beginning of the first day. */
export async function listUsageByDay(
  connection: Connection,
  consumer: ConsumerRef,
  { fromMs, days }: { readonly fromMs: number; readonly days: number },
): Promise<{ readonly fromMs: number; readonly spentMicros: Micros }[]> {
  const toMs = fromMs + days * DAY_MS;
  // Read first, so that no refund is counted without its charge.
  const refunds = await connection.any(sql.type(refundRow)`
    select (extract(epoch from date_trunc('day', uuid_extract_timestamp(id), 'UTC')) * 1000)::int8 as "dayMs",
      sum(amount_micros)::int8 as "refundedMicros"
    from farebox.charge_refunds
    where ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId}
      and id >= ${uuidFloor(fromMs)} and id < ${uuidFloor(toMs)}
    group by 1
  `);
  const refunded = new Map(refunds.map((each) => [each.dayMs, each.refundedMicros]));
  const ends = Array.from({ length: days + 1 }, (_, day) => fromMs + day * DAY_MS);
  const spent = await spentBeforeEach(connection, consumer, ends);
  return ends.slice(0, -1).map((dayMs, day) => ({
    fromMs: dayMs,
    spentMicros: asMicros((spent[day + 1] ?? 0) - (spent[day] ?? 0) - (refunded.get(dayMs) ?? 0)),
  }));
}
