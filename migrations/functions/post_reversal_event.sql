-- An event for each state of a refund, a dispute or a fraud warning of a top-up: refund.made, dispute.open and so on.
create or replace function farebox.post_reversal_event() returns trigger language plpgsql as $$
begin
  perform farebox.post_event_of_ledger(
    new.ledger,
    (select account_id from farebox.top_ups
      where ledger = new.ledger and consumer_id = new.consumer_id and id = new.top_up_id),
    new.kind || '.' || new.status,
    json_build_object(
      'id', farebox.wire_id(case new.kind when 'refund' then 'tur' when 'dispute' then 'dsp' else 'frw' end, new.id),
      'topUpId', farebox.wire_id('tu', new.top_up_id),
      'amount', farebox.wire_dollars(new.amount_micros),
      'status', new.status,
      'createdAt', farebox.wire_time(new.created_at)
    ));
  return null;
end $$;

create or replace trigger reversals_event_insert after insert on farebox.reversals
  for each row execute function farebox.post_reversal_event();
create or replace trigger reversals_event_update after update of status on farebox.reversals
  for each row when (old.status <> new.status) execute function farebox.post_reversal_event();
