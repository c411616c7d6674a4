/**
 * Which top-up paid for which charge, first in, first out: a top-up pays for the charges that overlap its lot on the
 * axis of the consumer's spending. After lots of $10.00 and $5.00, a charge from $9.00 to $11.00 on that axis takes
 * $1.00 from each. Spent positions never move, so the result does not depend on when it is computed.
 */
import { Type, type Static } from 'typebox';
import { firstLotAt } from '../balance/first-lot.ts';
import { TOP_UP_STATUSES } from '../../domain/top-up.ts';
import {
  micros,
  row,
  sql,
  type Connection,
  type DeveloperRef,
  type Fragment,
} from '../database.ts';
import { isBefore, type Page } from '../page.ts';

const FIRST_LOT = firstLotAt(
  sql.fragment`s.ledger`,
  sql.fragment`s.consumer_id`,
  sql.fragment`s.begins`,
);

/** What `s` took from each top-up. */
const TAKEN_FROM_LOTS = sql.fragment`(
  select top_up_id, sum(least(to_micros, s.ends) - greatest(from_micros, s.begins)) as micros
  from farebox.lots
  where ledger = s.ledger and consumer_id = s.consumer_id and top_up_id is not null
    and from_micros < s.ends and to_micros > s.begins and to_micros > from_micros
    and from_micros >= ${FIRST_LOT}
  group by top_up_id
)`;

/**
 * The amounts that top-ups paid, computed from the charges, archived ones among them, and their refunds. The
 * sums and the tail must add up to the same. A top-up has a second lot when a refund of it failed; a charge
 * that takes from both counts as one charge.
 */
export const PAID_BY_TOP_UPS = sql.fragment`
  ${paidByTopUps(sql.fragment`
    select ledger, consumer_id, developer, spent_micros, amount_micros, 1 as sign from farebox.charges
    union all
    select ledger, consumer_id, developer, spent_micros, amount_micros, -1 from farebox.charge_refunds
  `)}
  union all
  select ledger, developer, top_up_id, micros, charges from farebox.archived_attribution
`;

/**
 * The same of these rows only: charges, `sign` 1, and refunds of charges, `sign` -1. It probes the index for
 * each row: a consumer who tops up daily has hundreds of lots after two years, and comparing each charge with
 * each of them takes hours.
 */
export function paidByTopUps(spending: Fragment): Fragment {
  return sql.fragment`
  select s.ledger, s.developer, l.top_up_id, (s.sign * l.micros)::int8 as micros, (s.sign > 0)::int as charges
  from (
    select ledger, consumer_id, developer, sign, spent_micros - amount_micros as begins, spent_micros as ends
    from (${spending}) c
  ) s cross join lateral ${TAKEN_FROM_LOTS} l
  `;
}

/**
 * These rows of `attribution_tail` as `ledger, developer, top_up_id, micros, charges`, for the caller to add up; only
 * those of one developer when its number is given.
 */
export function cutByLots(tail: Fragment, developerNumber?: number): Fragment {
  const isWanted =
    developerNumber === undefined
      ? sql.fragment`true`
      : sql.fragment`c.developer = ${developerNumber}`;
  return sql.fragment`
    with spent as materialized (
      select g.ledger, g.consumer_id, c.developer, c.amount,
        g.spent_before + c.through - greatest(c.amount, 0) as begins,
        g.spent_before + c.through - least(c.amount, 0) as ends
      from ${tail} t
      cross join lateral unnest(t.charge_group, t.through, t.developers, t.amounts)
        as c (place, through, developer, amount)
      -- Not t.ledgers[c.place]: that decompresses the whole array for each charge.
      join lateral unnest(t.ledgers, t.consumers, t.spent_before) with ordinality
        as g (ledger, consumer_id, spent_before, place) using (place)
      where g.spent_before is not null and ${isWanted}
    ),
    -- Nearly all of a developer's charges to a consumer lie in the lot that contains their end.
    stretches as materialized (
      select s.*, l.from_micros, l.top_up_id
      from (
        select ledger, consumer_id, developer, min(begins) as begins, max(ends) as ends,
          sum(amount)::int8 as micros, count(*) filter (where amount > 0) as charges
        from spent group by 1, 2, 3
      ) s cross join lateral (
        select from_micros, top_up_id from farebox.lots
        where ledger = s.ledger and consumer_id = s.consumer_id
          and from_micros < s.ends and to_micros > from_micros
        order by from_micros desc limit 1
      ) l
    )
    select ledger, developer, top_up_id, micros, charges from stretches
    where from_micros <= begins and top_up_id is not null
    union all
    select s.ledger, s.developer, l.top_up_id, sign(s.amount) * l.micros, (s.amount > 0)::int
    from spent s cross join lateral ${TAKEN_FROM_LOTS} l
    -- 'is true' makes the planner use one hash look-up for each charge, regardless of its estimates.
    where ((s.ledger, s.consumer_id, s.developer) in (
      select ledger, consumer_id, developer from stretches where from_micros > begins
    )) is true
  `;
}

export interface PaidBack {
  readonly ledger: number;
  readonly consumerId: string;
  readonly developerNumber: number;
  /** The interval of the consumer's spending that is paid back. */
  readonly fromMicros: number;
  readonly toMicros: number;
}

/** Records, in the caller's transaction, that an interval no longer counts as charged to the top-ups that paid it. */
export async function notePaidBack(connection: Connection, paidBack: PaidBack): Promise<void> {
  const { ledger, consumerId, developerNumber, fromMicros, toMicros } = paidBack;
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.attribution_tail
      (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
    values (array[${ledger}::int2], array[${consumerId}::uuid], array[${fromMicros}::int8], array[1],
      array[0::int8], array[${developerNumber}::int4], array[${fromMicros - toMicros}::int8])
  `);
}

const AttributedTopUp = Type.Object({
  id: Type.String(),
  consumerId: Type.String(),
  amountMicros: micros,
  status: Type.Enum(TOP_UP_STATUSES),
  createdAt: Type.String(),
  chargedMicros: micros,
  charges: Type.Integer(),
});

export type AttributedTopUp = Static<typeof AttributedTopUp>;

const attributedRow = row(AttributedTopUp);

/** The top-ups that were partly or wholly spent on the developer's tools, newest first. */
export async function listAttributedTopUps(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  page: Page,
): Promise<readonly AttributedTopUp[]> {
  const isOnPage = isBefore(page, sql.fragment`top_up_id`);
  return connection.any(sql.type(attributedRow)`
    with moved as (
      select top_up_id, charged_micros as micros, charges from farebox.top_up_earnings
      where developer = ${developerNumber} and ${isOnPage}
      order by top_up_id desc limit ${page.limit}
    ), waiting as (
      select top_up_id, sum(micros) as micros, sum(charges) as charges
      from (${cutByLots(sql.fragment`farebox.attribution_tail`, developerNumber)}) w
      where ${isOnPage} group by 1
    ), page as (
      -- A top-up that is in the sums but not among their first rows is not on the page.
      select top_up_id as id, coalesce(m.micros, 0) + coalesce(w.micros, 0) as micros,
        coalesce(m.charges, 0) + coalesce(w.charges, 0) as charges
      from moved m full join waiting w using (top_up_id)
      order by top_up_id desc limit ${page.limit}
    )
    select t.id, t.consumer_id as "consumerId", t.amount_micros as "amountMicros", t.status,
      t.created_at as "createdAt", p.micros::int8 as "chargedMicros", p.charges::int8 as charges
    from page p join farebox.top_ups t using (id)
    order by id desc
  `);
}
