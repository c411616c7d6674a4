-- Writes an event for an account, in the transaction of the change of a global row that it tells of. The data is sent as it is: ids by
-- wire_id, amounts by wire_dollars, times by wire_time, in the form of src/schemas/events.ts.
-- The time is that of the change, not that of the transaction's start: of two changes of one row, which wait for each other, the later one
-- has the later time.
create or replace function farebox.post_event(p_account uuid, p_type text, p_data json) returns void
language sql volatile as $$
  insert into farebox.events (account_id, type, data, created_at) values (p_account, p_type, p_data, clock_timestamp())
$$;
