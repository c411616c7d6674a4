-- post_event.sql for a change in a ledger: the event is written beside it.
create or replace function farebox.post_event_of_ledger(p_ledger smallint, p_account uuid, p_type text, p_data json)
returns void
language sql volatile as $$
  insert into farebox.events (ledger, account_id, type, data, created_at)
  values (p_ledger, p_account, p_type, p_data, clock_timestamp())
$$;
