/**
 * The credits that paid for one charge, first in, first out: those whose lots the charge overlaps on the axis of the
 * consumer's spending. Spent positions never move, so the answer is always the same.
 */
import { Type, type Static } from 'typebox';
import { CREDIT_SOURCES } from '../../domain/credit.ts';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import type { ConsumerRef } from './consumers.ts';

const Credit = Type.Object({
  source: Type.Enum(CREDIT_SOURCES),
  /** UUID; null unless a top-up made the credit. */
  topUpId: nullable(Type.String()),
  creditedAt: Type.String(),
  paidMicros: micros,
});

const creditRow = row(Credit);

/** `chargeId` is a UUID. Oldest first; the amounts add up to the charge's. */
export async function listCreditsOfCharge(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  chargeId: string,
): Promise<readonly Static<typeof Credit>[]> {
  return connection.any(sql.type(creditRow)`
    select case when l.top_up_id is null then m.kind else 'top_up' end as source,
      l.top_up_id as "topUpId", m.created_at as "creditedAt",
      least(l.to_micros, c.spent_micros)
        - greatest(l.from_micros, c.spent_micros - c.amount_micros) as "paidMicros"
    from farebox.charges c
    join farebox.lots l on l.ledger = c.ledger and l.consumer_id = c.consumer_id
      and l.from_micros < c.spent_micros and l.to_micros > c.spent_micros - c.amount_micros
      and l.from_micros < l.to_micros
    join farebox.movements m on m.ledger = l.ledger and m.consumer_id = l.consumer_id
      and m.id = l.movement_id
    where c.ledger = ${ledger} and c.consumer_id = ${consumerId} and c.id = ${chargeId}
    order by l.from_micros
  `);
}
