/** The checks that prove holds: what they reserve, what they captured, and that each of them ends. */
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { holdIdOf, isOfHold } from '../charges/charge-origin.ts';
import { sql } from '../database.ts';
import { isOpen } from '../holds/hold.ts';
import { isTestLedger } from './modes.ts';
import { madeTwiceByOneKey } from './one-key.ts';

/**
 * The charges of a hold that was placed before this may be archived: those of an archived month, and of the
 * day after, as a clock that was set back over the end of the month dates a capture before its hold.
 */
const ALL_CHARGES_SINCE = sql.fragment`${ARCHIVED_BEFORE} + interval '1 day'`;

export const HOLD_CHECKS = {
  'reserved equals open holds': sql.fragment`
    select 'consumer ' || coalesce(c.id, h.consumer_id), 'reserved ' || coalesce(c.reserved_micros, 0)
      || ', holds ' || coalesce(h.micros, 0)
    from farebox.consumers c full join (
      select ledger, consumer_id, sum(held_micros) as micros from farebox.holds
      where ${isOpen('holds')} group by 1, 2
    ) h on h.ledger = c.ledger and h.consumer_id = c.id
    where coalesce(c.reserved_micros, 0) <> coalesce(h.micros, 0)`,

  'the captured amount of a hold equals its charges': sql.fragment`
    select 'hold ' || coalesce(h.id, c.hold_id), 'captured ' || coalesce(h.captured_micros, 0) || ' in '
      || coalesce(h.captures, 0) || ', charges ' || coalesce(c.micros, 0) || ' in ' || coalesce(c.charges, 0)
    from (
      select * from farebox.holds
      where (captures > 0 or captured_micros > 0) and uuid_extract_timestamp(id) >= ${ALL_CHARGES_SINCE}
    ) h full join (
      select ledger, consumer_id, developer, min(tool) as tool, max(tool) as last_tool,
        ${holdIdOf('charges')} as hold_id, sum(amount_micros) as micros, count(*) as charges
      from farebox.charges
      where ${isOfHold('charges')}
        and uuid_extract_timestamp(${holdIdOf('charges')}) >= ${ALL_CHARGES_SINCE}
      group by 1, 2, 3, 6
    ) c on c.ledger = h.ledger and c.consumer_id = h.consumer_id and c.hold_id = h.id
      and c.developer = h.developer
    where (h.captured_micros = c.micros and h.captures = c.charges
      and (h.tool = '' or h.tool = c.tool and h.tool = c.last_tool)) is not true`,

  // An earlier row, from before it was extended, does not count: the sweep deletes it and leaves the hold open.
  'every open hold is scheduled to expire': sql.fragment`
    select 'hold ' || h.id, 'expires at ' || h.expires_at
    from farebox.holds h left join (
      select unnest(holds) as hold_id, unnest(developers) as developer, due_at from farebox.hold_expiries
    ) x on x.hold_id = h.id and x.developer = h.developer and x.due_at = h.expires_at
    where ${isOpen('h')} and x.hold_id is null`,

  'no hold is between a live and a test account': sql.fragment`
    select 'hold ' || min(h.id::text), count(*) || ' holds in ledger ' || h.ledger || ' for a developer in ledger '
      || a.ledger
    from farebox.holds h join farebox.accounts a on a.developer_number = h.developer
    where ${isTestLedger('h')} <> ${isTestLedger('a')} group by h.ledger, a.ledger`,

  // A hold whose charges may be archived counts as undone: a month is archived only if this check finds nothing.
  'an idempotency key placed at most one hold that took money': madeTwiceByOneKey(
    'holds',
    sql.fragment`not ${isOpen('made')} and (uuid_extract_timestamp(id) < ${ALL_CHARGES_SINCE} or captured_micros <= (
      select coalesce(sum(r.amount_micros), 0)
      from farebox.charges c join farebox.charge_refunds r
        on r.ledger = c.ledger and r.consumer_id = c.consumer_id and r.charge_id = c.id
      where c.ledger = made.ledger and c.consumer_id = made.consumer_id
        and ${isOfHold('c')} and ${holdIdOf('c')} = made.id
    ))`,
  ),

  'a lease is a hold, and what it held was settled, released or is still held': sql.fragment`
    select 'lease ' || coalesce(l.id, h.id), 'held ' || coalesce(h.amount_micros, 0) || ', settled '
      || coalesce(h.captured_micros, 0) || ', released ' || coalesce(l.released_micros, 0) || ', still held '
      || coalesce(h.held_micros, 0)
    from farebox.leases l
    full join (select * from farebox.holds where tool = '') h
      on h.ledger = l.ledger and h.consumer_id = l.consumer_id and h.id = l.id and h.developer = l.developer
    where (h.amount_micros = h.captured_micros + l.released_micros + h.held_micros and h.overflow_charge is null) is not true`,

  'a charge of a lease is for one of its tools, and at most its price': sql.fragment`
    select 'charge ' || c.id, c.tool || ' for ' || c.amount_micros || ', lease ' || l.id || ' has '
      || coalesce(t.price::text, 'no such tool')
    from farebox.charges c
    join farebox.leases l on l.id = ${holdIdOf('c')}
    left join lateral (
      select p.price from unnest(l.tools, l.highest_prices) as p (tool, price) where p.tool = c.tool
    ) t on true
    where (c.amount_micros <= t.price and c.developer = l.developer) is not true`,
} as const;
