-- Notes that the balances of these consumers have fallen below thresholds, in the transaction of the charges or holds that
-- took the money: writes the notice of an automatic top-up and the events, then disarms the thresholds. Each consumer is
-- locked, so of concurrent charges exactly one notes a crossing. A refusal for want of balance makes the event of an
-- exhausted balance, at any balance; note_refusals.sql decides whether it requests an automatic top-up too.
-- It is called only where a balance is below auto_top_up_below_micros or notice_below_micros, or for a refusal, and after
-- the counters have their final values. A consumer may be named more than once.
create or replace function farebox.note_crossings(
  p_ledger smallint[], p_consumer uuid[], p_is_refused boolean[]
) returns void
language plpgsql volatile
-- Probes of primary keys, for the reasons in post_charges_2.sql.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  with low as (
    update farebox.consumers c set auto_top_up_below_micros = null
    from (select distinct q.ledger, q.consumer from unnest(p_ledger, p_consumer) as q(ledger, consumer)) a
    where c.ledger = any (array[a.ledger]) and c.id = any (array[a.consumer])
      and c.credited_micros - c.spent_micros - c.held_micros < c.auto_top_up_below_micros
    returning c.ledger, c.id
  )
  insert into farebox.outbox (ledger, topic, subject_id, is_refused)
  select ledger, 'auto_top_up', id, false from low;

  with crossed as (
    update farebox.thresholds t set crossed_at = now()
    from (
      select q.ledger, q.consumer, bool_or(q.is_refused) as is_refused
      from unnest(p_ledger, p_consumer, p_is_refused) as q(ledger, consumer, is_refused) group by 1, 2
    ) a
    cross join lateral (
      select credited_micros - spent_micros - held_micros as available from farebox.consumers
      where ledger = a.ledger and id = a.consumer limit 1
    ) c
    where t.ledger = any (array[a.ledger]) and t.consumer_id = any (array[a.consumer]) and t.crossed_at is null
      and (c.available < t.below_micros or a.is_refused and t.purpose = 'exhausted')
    returning t.ledger, t.consumer_id, t.purpose, t.below_micros, c.available
  )
  insert into farebox.events (ledger, account_id, created_at, type, data)
  select x.ledger, o.id, clock_timestamp(), case x.purpose when 'exhausted' then 'balance.exhausted' else 'balance.low' end,
    case x.purpose
      when 'exhausted' then json_build_object(
        'consumerId', farebox.wire_id('cns', x.consumer_id),
        'balance', farebox.wire_dollars(x.available))
      else json_build_object(
        'consumerId', farebox.wire_id('cns', x.consumer_id),
        'balance', farebox.wire_dollars(x.available),
        'threshold', farebox.wire_dollars(x.below_micros)) end
  from crossed x join farebox.accounts o on o.consumer_id = any (array[x.consumer_id])
  order by x.purpose desc;
end $$;
