/**
 * What spend keys spent that no rollup has added to their sums yet: charges that their flush left in the tail
 * of spending, one row for all of them, and those that were decided one by one and refunds, each in a row of
 * the tail of earnings.
 */
import { sql, type Fragment } from '../database.ts';

/**
 * As rows of `ledger, consumer_id, spend_key, developer, tool, minute, amount_micros, charges`. Of one
 * consumer if given.
 */
export function waitingSpending(consumerId?: string) {
  const ofTail =
    consumerId === undefined ? sql.fragment`is not null` : sql.fragment`= ${consumerId}`;
  const isWanted =
    consumerId === undefined
      ? sql.fragment`true`
      : sql.fragment`consumers @> array[${consumerId}::uuid]`;
  return sql.fragment`
    select ledger, consumer_id, spend_key, developer, tool, minute, amount_micros, charges
    from farebox.earnings_tail where consumer_id ${ofTail}
    union all
    select ledger, consumer_id, spend_key, developer, tool, minute, amount_micros, 1
    from (${spentByFlushes(sql.fragment`(select * from farebox.key_spending_tail where ${isWanted})`)}) f
    where consumer_id ${ofTail}`;
}

/** These rows of `key_spending_tail`, charge by charge, with their `flush`. Its day is the `minute` of a charge. */
export function spentByFlushes(tail: Fragment) {
  return sql.fragment`
    select t.id as flush, g.ledger, g.consumer_id, c.spend_key, c.developer, c.tool,
      c.day::timestamp at time zone 'UTC' as minute, c.amount as amount_micros
    from ${tail} t
    cross join lateral unnest(t.charge_group, t.spend_keys, t.developers, t.tools, t.days, t.amounts)
      as c (place, spend_key, developer, tool, day, amount)
    -- Not t.ledgers[c.place]: that decompresses the whole array for each charge.
    join lateral unnest(t.ledgers, t.consumers) with ordinality as g (ledger, consumer_id, place) using (place)
    where c.spend_key > 0 and g.consumer_id is not null`;
}
