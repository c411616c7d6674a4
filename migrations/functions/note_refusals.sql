-- Requests an automatic top-up for each of these consumers that had a charge or hold refused for want of balance, at any
-- balance, if the amount of the top-up would cover the smallest: otherwise the tool would be refused again, and each
-- attempt would charge the card once more. In the transaction of the refusal: writes the notice and disarms the
-- threshold, so exactly one request is made under concurrency. A consumer may be named more than once.
-- It is called before note_crossings, which requests the top-up of a balance below the threshold in any case, and after
-- the counters have their final values. p_amount has what was asked of the balance; null where nothing was refused.
create or replace function farebox.note_refusals(
  p_ledger smallint[], p_consumer uuid[], p_amount bigint[]
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
  with asked as (
    update farebox.consumers c set auto_top_up_below_micros = null
    from (
      select q.ledger, q.consumer, min(q.amount) as amount
      from unnest(p_ledger, p_consumer, p_amount) as q(ledger, consumer, amount) group by 1, 2
    ) a
    cross join lateral (
      select amount_micros from farebox.auto_top_ups where ledger = a.ledger and consumer_id = a.consumer limit 1
    ) t
    where c.ledger = any (array[a.ledger]) and c.id = any (array[a.consumer])
      and c.auto_top_up_below_micros is not null
      and a.amount <= c.credited_micros - c.spent_micros - c.held_micros + t.amount_micros
    returning c.ledger, c.id
  )
  insert into farebox.outbox (ledger, topic, subject_id, is_refused)
  select ledger, 'auto_top_up', id, true from asked;
end $$;
