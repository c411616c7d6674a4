-- Tells the consumer that a developer refunded a charge.
create or replace function farebox.post_charge_refund_event() returns trigger language plpgsql as $$
begin
  perform farebox.post_event_of_ledger(new.ledger, a.id, 'charge.refunded', json_build_object(
    'id', farebox.wire_id('rf', new.id),
    'chargeId', farebox.wire_id('chg', new.charge_id),
    'amount', farebox.wire_dollars(new.amount_micros),
    'refunded', farebox.wire_dollars(new.refunded_micros),
    'createdAt', farebox.wire_time(uuid_extract_timestamp(new.id))
  ))
  from farebox.accounts a where a.consumer_id = new.consumer_id;
  return null;
end $$;

create or replace trigger charge_refunds_event after insert on farebox.charge_refunds
  for each row execute function farebox.post_charge_refund_event();
