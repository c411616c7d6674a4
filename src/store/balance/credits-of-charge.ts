/**
 * The credits that paid for one charge, first in, first out: those whose lots the charge overlaps on the axis of the
 * consumer's spending. Spent positions never move, so the answer is always the same.
 */
import { Type, type Static } from 'typebox';
import { CREDIT_SOURCES } from '../../domain/credit.ts';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import type { ConsumerRef } from './consumers.ts';
import { firstLotAt } from './first-lot.ts';

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
    with charge as materialized (
      select spent_micros - amount_micros as begins, spent_micros as ends from farebox.charges
      where ledger = ${ledger} and consumer_id = ${consumerId} and id = ${chargeId}
    )
    select case when l.top_up_id is null then m.kind else 'top_up' end as source,
      l.top_up_id as "topUpId", m.created_at as "creditedAt",
      least(l.to_micros, c.ends) - greatest(l.from_micros, c.begins) as "paidMicros"
    from charge c, (
      select * from farebox.lots
      where ledger = ${ledger} and consumer_id = ${consumerId} and from_micros < to_micros
        and from_micros < (select ends from charge) and to_micros > (select begins from charge)
        and from_micros >= ${firstLotAt(
          sql.fragment`${ledger}`,
          sql.fragment`${consumerId}`,
          sql.fragment`(select begins from charge)`,
        )}
      order by from_micros
    ) l
    join farebox.movements m on m.ledger = ${ledger} and m.consumer_id = ${consumerId} and m.id = l.movement_id
    order by l.from_micros
  `);
}
