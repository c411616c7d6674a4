-- An account with a webhook endpoint is told when its balance is used up. Without one there is nobody to tell, and no
-- threshold.
create or replace function farebox.arm_exhausted() returns trigger language plpgsql as $$
begin
  insert into farebox.thresholds (ledger, consumer_id, purpose, below_micros, crossed_at)
  select c.ledger, c.id, 'exhausted', 1,
    case when c.credited_micros - c.spent_micros - c.held_micros < 1 then now() end
  from farebox.accounts a join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
  where a.id = new.account_id
  for update of c
  on conflict do nothing;
  return null;
end $$;

create or replace trigger webhook_endpoints_arm_exhausted after insert on farebox.webhook_endpoints
  for each row execute function farebox.arm_exhausted();
