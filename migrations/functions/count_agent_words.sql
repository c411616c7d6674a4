-- Adds words of agents to the vocabulary (farebox.agent_words) and removes others. Up to 100 agents per word, the count
-- is exact. Beyond that, a change of less than one percent is applied at random, and then as one percent: the count
-- stays accurate to a few percent, and registrations with common words do not queue for these words' rows. Words are
-- written in sorted order, so that no two calls deadlock.
create or replace function farebox.count_agent_words(added tsvector[], removed tsvector[]) returns void
language sql as $$
  insert into farebox.agent_words as w (word, agents)
  select word, sign(n) * greatest(abs(n), round(agents / 100.0))
  from (
    select word collate "C" as word, sum(n) as n
    from (
      select unnest(tsvector_to_array(search)) as word, 1 as n from unnest(added) search
      union all
      select unnest(tsvector_to_array(search)), -1 from unnest(removed) search
    ) each_word
    group by word having sum(n) <> 0
  ) changed
  left join farebox.agent_words using (word)
  where random() * coalesce(agents, 0) < abs(n) * 100
  order by word
  on conflict (word) do update set agents = greatest(0, w.agents + excluded.agents)
$$;
