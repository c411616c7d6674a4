-- An event for each state of a top-up: top_up.pending once its workflow has taken it up, and the others with each change
-- of the status. As in the API, a top-up has a tax only where tax is added, and it is null until it is known.
create or replace function farebox.post_top_up_event() returns trigger language plpgsql as $$
begin
  perform farebox.post_event_of_ledger(new.ledger, new.account_id, 'top_up.' || new.status, (jsonb_build_object(
    'id', farebox.wire_id('tu', new.id),
    'amount', farebox.wire_dollars(new.amount_micros),
    'status', new.status,
    'method', new.method,
    'automatic', new.automatic,
    'createdAt', farebox.wire_time(new.created_at),
    'completedAt', farebox.wire_time(new.completed_at),
    'failure', case when new.failure_code is not null then
      json_build_object('code', new.failure_code, 'message', coalesce(new.failure_message, '')) end
  ) || case when new.is_taxed then jsonb_build_object(
    'tax', case when new.seen_verdict = 'paid' or new.tax_calculation_id is not null then farebox.wire_dollars(new.tax_micros) end
  ) else '{}' end)::json);
  return null;
end $$;

create or replace trigger top_ups_event_insert after insert on farebox.top_ups
  for each row when (new.opened_at is not null or new.status <> 'pending')
  execute function farebox.post_top_up_event();
create or replace trigger top_ups_event_update after update on farebox.top_ups
  for each row when (old.status <> new.status
    or (new.status = 'pending' and old.opened_at is null and new.opened_at is not null))
  execute function farebox.post_top_up_event();
