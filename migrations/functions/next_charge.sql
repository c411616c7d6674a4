-- The id of a consumer's first charge from an id on; null without one. A function, for its settings: a planner that
-- takes the consumer for one with few charges would read and sort all of them.
create or replace function farebox.next_charge(p_ledger smallint, p_consumer uuid, p_from uuid) returns uuid
language sql stable
set enable_sort = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select id from farebox.charges where ledger = p_ledger and consumer_id = p_consumer and id >= p_from
  order by id limit 1
$$;
