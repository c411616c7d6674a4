-- A developer's newest charges from an id on and before another, all of one tool when one is given: the wanted number, and
-- all others whose ids have the same first eight bytes as the last, so that the caller finds the newest by id among them.
-- A function, for its settings: a planner that takes the developer for one with few charges would read and sort all of
-- them. The settings leave one plan: the index backwards, in the months between the ids. These are below 8000..., because
-- the index has their first eight bytes as a signed number.
create or replace function farebox.charges_of_developer(p_developer int4, p_from uuid, p_to uuid, p_tool text, p_limit int4)
returns setof farebox.charges
language sql stable
set plan_cache_mode = force_generic_plan
set enable_sort = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select * from farebox.charges
  where developer = p_developer and id >= p_from and id < p_to
    and substr(uuid_send(id), 1, 8)::int8 >= substr(uuid_send(p_from), 1, 8)::int8
    and substr(uuid_send(id), 1, 8)::int8 <= substr(uuid_send(p_to), 1, 8)::int8
    and (p_tool is null or tool = p_tool)
  order by substr(uuid_send(id), 1, 8)::int8 desc
  fetch first (p_limit) rows with ties
$$;
