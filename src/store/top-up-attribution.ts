/**
 * Which top-up paid for which charge, first in, first out: a lot and a charge that overlap on the axis of
 * what the consumer has spent.
 */
import { Type, type Static } from 'typebox';
import type { Page } from './charges.ts';
import { row, sql, type Connection } from './database.ts';

const AttributedTopUp = Type.Object({
  id: Type.String(),
  consumerId: Type.String(),
  amountMicros: Type.Integer(),
  status: Type.String(),
  createdAt: Type.String(),
  chargedMicros: Type.Integer(),
  charges: Type.Integer(),
});

export type AttributedTopUp = Static<typeof AttributedTopUp>;

const attributedRow = row(AttributedTopUp);

/** Top-ups of which a part was spent on the developer's tools, newest first. */
export async function listAttributedTopUps(
  connection: Connection,
  { developerNumber }: { readonly developerNumber: number },
  page: Page,
): Promise<readonly AttributedTopUp[]> {
  return connection.any(sql.type(attributedRow)`
    with spent as (
      select l.top_up_id, count(*) as charges,
        sum(least(l.to_micros, c.spent_micros)
          - greatest(l.from_micros, c.spent_micros - c.amount_micros))::int8 as micros
      from farebox.charges c join farebox.lots l
        on l.ledger = c.ledger and l.consumer_id = c.consumer_id
        and l.from_micros < c.spent_micros and l.to_micros > c.spent_micros - c.amount_micros
      where c.developer = ${developerNumber} and l.top_up_id is not null
      group by l.top_up_id
    )
    select t.id, t.consumer_id as "consumerId", t.amount_micros as "amountMicros", t.status,
      t.created_at as "createdAt", s.micros as "chargedMicros", s.charges
    from spent s join farebox.top_ups t on t.id = s.top_up_id
    where ${page.beforeId === undefined ? sql.fragment`true` : sql.fragment`t.id < ${page.beforeId}`}
    order by t.id desc limit ${page.limit}
  `);
}
