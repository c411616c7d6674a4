-- Wakes the relays (src/temporal/relay.ts) when a notice is inserted, so that it is handed over at once.
create or replace function farebox.wake_relays() returns trigger language plpgsql as $$
begin
  perform pg_notify('farebox_outbox', '');
  return null;
end $$;

-- A notice for later does not wake them: the process that wrote it means to signal the workflow itself.
create or replace trigger outbox_posted after insert on farebox.outbox
  for each row when (new.next_attempt_at <= now()) execute function farebox.wake_relays();
