/** The checks that prove balances: consumers, the movements that make them up, and their lots. */
import { balanceOf } from '../balance/consumers.ts';
import { sql } from '../database.ts';
import { CLOCKS_APART_MAX } from './clocks.ts';

export const BALANCE_CHECKS = {
  'no balance is negative': sql.fragment`
    select 'consumer ' || id as subject, 'balance ' || ${balanceOf('consumers')} as detail
    from farebox.consumers where ${balanceOf('consumers')} < 0`,

  'credited is the sum of movements': sql.fragment`
    select 'consumer ' || c.id, 'credited ' || c.credited_micros || ', movements ' || coalesce(m.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.movements group by 1, 2
    ) m on m.ledger = c.ledger and m.consumer_id = c.id
    where c.credited_micros <> coalesce(m.micros, 0)`,

  'the monthly sums match the movements': sql.fragment`
    select 'consumer ' || consumer_id, to_char(month, 'YYYY-MM') || ', ' || kind || ': '
      || coalesce(m.movements, 0) || ' movements of ' || coalesce(m.micros, 0) || ' micros in total, but sums say '
      || coalesce(s.movements, 0) || ' of ' || coalesce(s.amount_micros, 0)
    from (
      select ledger, consumer_id, date_trunc('month', created_at at time zone 'UTC')::date as month, kind,
        count(*) as movements, sum(amount_micros) as micros
      from farebox.movements group by 1, 2, 3, 4
    ) m
    full join farebox.movement_sums s using (ledger, consumer_id, month, kind)
    where coalesce(m.movements, 0) <> coalesce(s.movements, 0) or coalesce(m.micros, 0) <> coalesce(s.amount_micros, 0)`,

  'lots are contiguous and end at credited': sql.fragment`
    select 'consumer ' || c.id, 'lots of ' || coalesce(l.micros, 0) || ' end at ' || coalesce(l.ends, 0)
      || ', ' || coalesce(l.gaps, 0) || ' gaps, credited ' || c.credited_micros
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(to_micros - from_micros) as micros, max(to_micros) as ends,
        count(*) filter (where from_micros <> before) as gaps
      from (
        select *, coalesce(lag(to_micros) over (
          partition by ledger, consumer_id order by from_micros, to_micros), 0) as before
        from farebox.lots
      ) p group by 1, 2
    ) l on l.ledger = c.ledger and l.consumer_id = c.id
    where c.credited_micros <> coalesce(l.micros, 0) or c.credited_micros <> coalesce(l.ends, 0)
      or coalesce(l.gaps, 0) <> 0`,

  'each account has one consumer, and each consumer one account': sql.fragment`
    select case when c.id is null then 'account ' || a.id else 'consumer ' || c.id end,
      case when c.id is null then 'has no consumer ' || a.consumer_id || ' in ledger ' || a.ledger
        else 'belongs to no account in ledger ' || c.ledger end
    from farebox.accounts a
    full join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
    where a.id is null or c.id is null`,

  'a movement has the sign of its kind, and a reason if nothing else explains it': sql.fragment`
    select 'movement ' || id, kind || ' of ' || amount_micros || coalesce(', ' || reason, '')
    from farebox.movements
    where case kind when 'adjustment' then false
        when 'refund' then amount_micros > 0 when 'dispute' then amount_micros > 0
        else amount_micros < 0 end
      or (kind in ('adjustment', 'charge_refund') and coalesce(reason, '') = '')`,

  // A repeat with the key is answered as done. Not every adjustment has a record, and none names its movement, so
  // movements that are alike are counted.
  'every adjustment that is recorded was made': sql.fragment`
    select 'consumer ' || r.consumer_id, r.amount_micros || ' (' || r.reason || '): recorded by ' || r.records || ', movements '
      || coalesce(m.movements, 0)
    from (
      select ledger, consumer_id, amount_micros, reason, count(*) as recorded, string_agg(record, ', ') as records
      from (
        select ledger, consumer_id, amount_micros, reason, 'key ' || idempotency_key as record
        from farebox.adjustment_keys
        union all select a.ledger, a.consumer_id, o.amount_micros, o.reason, 'action ' || o.id
        from farebox.operator_actions o join farebox.accounts a on a.id = o.account_id where o.kind = 'adjustment'
      ) each group by 1, 2, 3, 4
    ) r
    left join (
      select ledger, consumer_id, amount_micros, reason, count(*) as movements
      from farebox.movements where kind = 'adjustment' group by 1, 2, 3, 4
    ) m using (ledger, consumer_id, amount_micros, reason)
    where r.recorded > coalesce(m.movements, 0)`,

  // The time determines the month of a statement.
  'the time of a movement matches its id': sql.fragment`
    select 'movement ' || id, 'booked at ' || created_at || ', its id was made at '
      || coalesce(uuid_extract_timestamp(id)::text, 'no time')
    from farebox.movements
    where (uuid_extract_timestamp(id) between created_at - ${CLOCKS_APART_MAX}
      and created_at + ${CLOCKS_APART_MAX}) is not true`,

  'every credit has a lot, for the same top-up and no larger': sql.fragment`
    select 'movement ' || coalesce(m.id, l.movement_id), 'credited '
      || coalesce(m.amount_micros::text, 'nothing') || ' for ' || coalesce(m.top_up_id::text, 'no top-up')
      || ', the lot has ' || coalesce((l.to_micros - l.from_micros)::text, 'nothing')
      || ' for ' || coalesce(l.top_up_id::text, 'no top-up')
    from (select * from farebox.movements where amount_micros > 0) m
    full join farebox.lots l
      on l.ledger = m.ledger and l.consumer_id = m.consumer_id and l.movement_id = m.id
    where (l.to_micros - l.from_micros <= m.amount_micros
      and l.top_up_id is not distinct from m.top_up_id) is not true`,

  // A credit's lot goes behind all other lots, and cuts keep the order.
  'lots are in the order of their credits': sql.fragment`
    select 'movement ' || movement_id, 'credited at ' || created_at || ', its lot is behind that of ' || latest
    from (
      select l.movement_id, m.created_at, max(m.created_at) over (
        partition by l.ledger, l.consumer_id order by l.from_micros, l.to_micros, m.created_at
        rows between unbounded preceding and 1 preceding) as latest
      from farebox.lots l join farebox.movements m
        on m.ledger = l.ledger and m.consumer_id = l.consumer_id and m.id = l.movement_id
    ) o where created_at < latest - ${CLOCKS_APART_MAX}`,

  // Refunds and disputes cut the lots of their own top-up first. So while part of its only lot is unspent, everything
  // they took came from it. What others took, including adjustments, may have come from it too.
  'a lot equals its credit less the amounts taken from it': sql.fragment`
    select 'top-up ' || t.top_up_id, 'credited ' || t.credited || ', its own refunds and disputes took ' || t.taken
      || ', others ' || c.taken - t.taken || ', the lot has ' || l.to_micros - l.from_micros
    from (
      select ledger, consumer_id, top_up_id, sum(amount_micros) filter (where amount_micros > 0) as credited,
        coalesce(-sum(amount_micros) filter (where amount_micros < 0), 0) as taken
      from farebox.movements where top_up_id is not null
      group by 1, 2, 3 having count(*) filter (where amount_micros > 0) = 1
    ) t
    join (
      select ledger, consumer_id,
        coalesce(-sum(amount_micros) filter (where amount_micros < 0), 0) as taken
      from farebox.movements group by 1, 2
    ) c using (ledger, consumer_id)
    join farebox.lots l using (ledger, consumer_id, top_up_id)
    join farebox.consumers o on o.ledger = t.ledger and o.id = t.consumer_id
    where l.to_micros - l.from_micros < t.credited - c.taken
      or (l.to_micros > greatest(l.from_micros, o.spent_micros)
        and l.to_micros - l.from_micros > t.credited - t.taken)`,

  'a charge compares the balance with the highest threshold that is armed': sql.fragment`
    select 'consumer ' || c.id, 'notices below ' || coalesce(c.notice_below_micros::text, 'nothing') || ', armed below '
      || coalesce(t.highest::text, 'nothing')
    from farebox.consumers c
    full join (
      select ledger, consumer_id, max(below_micros) filter (where crossed_at is null) as highest
      from farebox.thresholds group by 1, 2
    ) t on t.ledger = c.ledger and t.consumer_id = c.id
    where c.notice_below_micros is distinct from t.highest`,

  // Where money was taken back or is held, the next charge notes it.
  'a charge that crossed a threshold noted it': sql.fragment`
    select 'consumer ' || c.id, t.purpose || ' is armed below ' || t.below_micros || ', balance ' || ${balanceOf('c')}
    from farebox.thresholds t
    join farebox.consumers c on c.ledger = t.ledger and c.id = t.consumer_id
    where t.crossed_at is null and ${balanceOf('c')} < t.below_micros
      and c.held_micros = c.reserved_micros
      and not exists (
        select from farebox.movements m where m.ledger = c.ledger and m.consumer_id = c.id and m.amount_micros < 0
      )`,

  'an account with a webhook endpoint is told when its balance is used up': sql.fragment`
    select distinct 'account ' || a.id, 'has no threshold'
    from farebox.webhook_endpoints e
    join farebox.accounts a on a.id = e.account_id
    where not exists (
      select from farebox.thresholds t
      where t.ledger = a.ledger and t.consumer_id = a.consumer_id and t.purpose = 'exhausted'
    )`,
} as const;
