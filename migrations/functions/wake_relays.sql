-- Wakes the relays (src/temporal/relay.ts) when a notice is inserted, so that it is delivered at once.
create or replace function farebox.wake_relays() returns trigger language plpgsql as $$
begin
  perform pg_notify('farebox_outbox', '');
  return null;
end $$;

-- Delayed notices do not wake them: the process that wrote one is about to signal the workflow itself.
create or replace trigger outbox_posted after insert on farebox.outbox
  for each row when (new.next_attempt_at <= now()) execute function farebox.wake_relays();
