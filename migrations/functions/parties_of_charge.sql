-- The consumer and the developer of a charge, by its id alone, which no index begins with. A function, for its settings:
-- they leave one plan, the index of developers' charges in the month of the id. It is searched once for each developer with
-- charges in that month. Without the settings, a planner without statistics reads all charges of the month.
create or replace function farebox.parties_of_charge(p_id uuid)
returns table (consumer_id uuid, developer int4)
language sql stable rows 1
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select consumer_id, developer from farebox.charges
  where id = p_id and substr(uuid_send(id), 1, 8)::int8 = substr(uuid_send(p_id), 1, 8)::int8
$$;
