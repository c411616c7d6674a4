-- Keeps the vocabulary in step with the agents, regardless of who writes them (count_agent_words.sql).
create or replace function farebox.agents_changed() returns trigger language plpgsql as $$
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

create or replace trigger agents_inserted after insert on farebox.agents
  referencing new table as new_agents for each statement execute function farebox.agents_changed();
create or replace trigger agents_updated after update on farebox.agents
  referencing old table as old_agents new table as new_agents
  for each statement execute function farebox.agents_changed();
create or replace trigger agents_deleted after delete on farebox.agents
  referencing old table as old_agents for each statement execute function farebox.agents_changed();
