-- Adds each change of the sums of keys to the sums of the budgets on their paths, in the same transaction.
-- Locks: one change at a time, until it commits. A step of the rollups inserts some rows of keys and updates others, and each
-- of the two comes here by itself, so without the lock two steps could take the rows of a budget in different orders.
create or replace function farebox.add_to_budget_spending() returns trigger language plpgsql
-- Each key is probed once, for the reasons in post_charges_2.sql: before the join (materialized), or the planner would probe it for each
-- of its rows; in the order of the primary key, or the planner might take another index that begins with the same columns. The join is
-- by hash: by merge, it takes half as long again. Keys of one path are added up before their path is unfolded, as a step has
-- thousands of keys of a few budgets.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
as $$
declare
  v_columns constant text := 'select ledger, consumer_id, spend_key, span, begins_at, developer, tool';
  v_added constant text := v_columns || ', amount_micros as micros, charges from added';
  v_removed constant text := v_columns || ', -amount_micros as micros, -charges as charges from removed';
  -- The transition tables differ by operation, and a statement may name only those that exist.
  v_changes constant text := case tg_op when 'INSERT' then v_added when 'DELETE' then v_removed
    else v_added || ' union all ' || v_removed end;
  v_is_changed boolean;
begin
  execute 'select exists (' || v_changes || ')' into v_is_changed;
  if not v_is_changed then
    return null;
  end if;
  perform pg_advisory_xact_lock(hashtext('farebox.budget_spending'));
  execute '
    with paths as materialized (
      select ledger, consumer_id, spend_key, (
        select case when (k.ledger, k.consumer_id, k.number) = (s.ledger, s.consumer_id, s.spend_key) then k.path end
        from farebox.spend_keys k
        where (k.ledger, k.consumer_id, k.number) >= (s.ledger, s.consumer_id, s.spend_key)
        order by k.ledger, k.consumer_id, k.number limit 1
      ) as path
      from (select distinct ledger, consumer_id, spend_key from (' || v_changes || ') c) s
    )
    insert into farebox.budget_spending as b
      (ledger, consumer_id, budget, grouped_by, span, begins_at, mark, amount_micros, charges)
    select s.ledger, s.consumer_id, n.budget, g.grouped_by, s.span, s.begins_at, g.mark, sum(s.micros), sum(s.charges)
    from (
      select c.ledger, c.consumer_id, p.path, c.span, c.begins_at, c.developer, c.tool, sum(c.micros) as micros,
        sum(c.charges) as charges
      from (' || v_changes || ') c
      join paths p using (ledger, consumer_id, spend_key)
      group by 1, 2, 3, 4, 5, 6, 7
    ) s
    cross join lateral unnest(s.path) as n (budget)
    cross join lateral (values (''tool'', s.tool), (''developer'', s.developer::text)) as g (grouped_by, mark)
    group by 1, 2, 3, 4, 5, 6, 7
    having sum(s.micros) <> 0 or sum(s.charges) <> 0
    order by 1, 2, 3, 4, 5, 6, 7
    on conflict on constraint budget_spending_pkey do update
      set amount_micros = b.amount_micros + excluded.amount_micros, charges = b.charges + excluded.charges';
  return null;
end $$;

create or replace trigger key_spending_added after insert on farebox.key_spending
  referencing new table as added
  for each statement execute function farebox.add_to_budget_spending();
create or replace trigger key_spending_changed after update on farebox.key_spending
  referencing old table as removed new table as added
  for each statement execute function farebox.add_to_budget_spending();
create or replace trigger key_spending_removed after delete on farebox.key_spending
  referencing old table as removed
  for each statement execute function farebox.add_to_budget_spending();
