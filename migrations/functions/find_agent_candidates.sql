-- The agents for a search to rank: for one query after another, those whose names match, then those that match
-- anywhere, until there are enough. Some appear twice. It reads no further and always uses the indexes, regardless of
-- statistics, so its cost hardly depends on the number of agents.
create or replace function farebox.find_agent_candidates(queries tsquery[], agents_max integer)
returns table (id text, protocol text, name_words text, search tsvector)
language sql stable
set enable_seqscan = off
as $$
  select a.id, a.protocol, a.name_words, a.search
  from unnest(queries) q cross join lateral (
    (select * from farebox.agents where ts_filter(search, '{a}') @@ q limit agents_max)
    union all
    (select * from farebox.agents where search @@ q limit agents_max)
  ) a
  limit agents_max
$$;
