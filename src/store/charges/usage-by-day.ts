/** A consumer's spending by day: a few index probes per day, for any number of charges. */
import { Type } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { spentBefore } from '../balance/spent.ts';
import { row, sql, type Connection } from '../database.ts';

const DAY_MS = 86_400_000;

const refundRow = row(Type.Object({ dayMs: Type.Integer(), refunded: Type.Integer() }));

/** Charges less refunds for each UTC day, in micros. `fromMs` is the beginning of the first day. */
export async function listUsageByDay(
  connection: Connection,
  consumer: ConsumerRef,
  { fromMs, days }: { readonly fromMs: number; readonly days: number },
): Promise<{ readonly fromMs: number; readonly spent: number }[]> {
  const toMs = fromMs + days * DAY_MS;
  // Read first, so that no refund is counted without its charge.
  const refunds = await connection.any(sql.type(refundRow)`
    select (extract(epoch from date_trunc('day', uuid_extract_timestamp(id), 'UTC')) * 1000)::int8 as "dayMs",
      sum(amount_micros)::int8 as refunded
    from farebox.charge_refunds
    where ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId}
      and id >= ${uuidFloor(fromMs)} and id < ${uuidFloor(toMs)}
    group by 1
  `);
  const refunded = new Map(refunds.map((each) => [each.dayMs, each.refunded]));
  const found: { fromMs: number; spent: number }[] = [];
  let before: number = await spentBefore(connection, consumer, fromMs);
  for (let dayMs = fromMs; dayMs < toMs; dayMs += DAY_MS) {
    const after = await spentBefore(connection, consumer, dayMs + DAY_MS);
    found.push({ fromMs: dayMs, spent: after - before - (refunded.get(dayMs) ?? 0) });
    before = after;
  }
  return found;
}
