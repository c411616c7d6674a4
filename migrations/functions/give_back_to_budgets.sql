-- Gives back to the nodes of spend keys, and to every node above, what was refunded or let go of: to a window only
-- what was counted in it. That is told by when a hold was placed, or by where a charge begins on the axis of what its
-- consumer spent; the other one is null. The caller has locked the consumers. Keys of 0 are no spend keys.
-- A window is not lowered below zero: after the clock was set back and the owner has set the window again, a hold of before
-- has a later time than the window, which did not count it. The error would keep all holds that are due from expiring.
create or replace function farebox.give_back_to_budgets(
  p_ledger smallint[], p_consumer uuid[], p_spend_key int[], p_micros bigint[], p_held_at timestamptz[],
  p_charged_from bigint[]
) returns void
language sql volatile
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with given as (
    select t.*, k.path
    from unnest(p_ledger, p_consumer, p_spend_key, p_micros, p_held_at, p_charged_from)
      as t(ledger, consumer, spend_key, micros, held_at, charged_from)
    join farebox.spend_keys k on k.ledger = any (array[t.ledger]) and k.consumer_id = any (array[t.consumer])
      and k.number = any (array[t.spend_key])
    where t.spend_key > 0 and t.micros > 0
  ), sums as (
    -- Grouped by the arguments: an index of the budgets has their order, and would be read whole for it.
    select g.ledger, g.consumer, p.number, sum(g.micros) as micros,
      coalesce(sum(g.micros) filter (where b.window_unit > 0
        and coalesce(g.held_at >= b.window_began, g.charged_from >= b.window_from_micros)), 0) as in_window
    from given g cross join lateral unnest(g.path) as p(number)
    join farebox.budgets b on b.ledger = any (array[g.ledger]) and b.consumer_id = any (array[g.consumer])
      and b.number = any (array[p.number])
    group by 1, 2, 3
  )
  update farebox.budgets b
  set used_micros = b.used_micros - s.micros,
    window_used_micros = greatest(b.window_used_micros - s.in_window, 0)
  from sums s
  where b.ledger = any (array[s.ledger]) and b.consumer_id = any (array[s.consumer])
    and b.number = any (array[s.number]);
$$;
