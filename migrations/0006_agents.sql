-- Agents, and how they are found (legacy endpoints, specification section 4.4). A search never reads more
-- than a bounded number of agents: words are looked up in a vocabulary that knows how many agents use each,
-- and only those go to the index of agents that leave few.
create extension if not exists pg_trgm;

create table farebox.agents (
  id text primary key,
  account_id uuid not null references farebox.accounts (id),
  name text not null,
  protocol text not null,
  endpoint text not null,
  description text not null default '',
  capabilities text[] not null default '{}',
  intents text[] not null default '{}',
  name_words text not null,
  search tsvector not null,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now()
);
comment on column farebox.agents.account_id is 'Who registered it first, and alone may change it.';
comment on column farebox.agents.name_words is 'The name as searches compare it: plain words in lower case.';
comment on column farebox.agents.search is
  'Stems, by weight: A id and name, B intents and capabilities, C protocol, D description.';
-- Without a list of pending entries, which every search would have to read from end to end.
create index agents_search on farebox.agents using gin (search) with (fastupdate = off);
create index agents_search_names on farebox.agents
  using gin (ts_filter(search, '{a}')) with (fastupdate = off);
create index agents_account on farebox.agents (account_id, id);

-- Every stem that an agent has, and about how many agents have it: what rarity is read from, and what a word
-- with a typing error is compared with. It is much smaller than the agents are.
create table farebox.agent_words (
  word text collate "C" primary key,
  agents integer not null
) with (fillfactor = 70);
-- Without numbers: one that is a digit off is another number.
create index agent_words_alike on farebox.agent_words using gin (word gin_trgm_ops)
  with (fastupdate = off) where word !~ '[0-9]';

-- Keeps the vocabulary in step with the agents, whoever writes them. Up to 100 agents a word is counted
-- exactly; beyond, a change of less than a percent is counted by chance, and then as a percent. The number
-- stays right to some percent, and registrations that share common words do not queue for these words' rows.
-- Words are written in their order, so that none wait for each other in a circle.
create function farebox.count_agent_words(added tsvector[], removed tsvector[]) returns void
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

create function farebox.agents_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform farebox.count_agent_words((select array_agg(search) from new_agents), '{}');
  elsif tg_op = 'UPDATE' then
    perform farebox.count_agent_words(
      (select array_agg(search) from new_agents), (select array_agg(search) from old_agents)
    );
  else
    perform farebox.count_agent_words('{}', (select array_agg(search) from old_agents));
  end if;
  return null;
end $$;

create trigger agents_inserted after insert on farebox.agents
  referencing new table as new_agents for each statement execute function farebox.agents_changed();
create trigger agents_updated after update on farebox.agents
  referencing old table as old_agents new table as new_agents
  for each statement execute function farebox.agents_changed();
create trigger agents_deleted after delete on farebox.agents
  referencing old table as old_agents for each statement execute function farebox.agents_changed();

-- The agents that a search is to rank: for one query after the other those whose names it fits, then those
-- that it fits anywhere, until there are enough; some come twice. It reads no further than that, and by the
-- indexes whatever the statistics say, so that its cost hardly depends on how many agents there are.
create function farebox.find_agent_candidates(queries tsquery[], agents_max integer)
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
