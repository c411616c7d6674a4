-- Keys of an account do not pay a developer whose budget is closed. The account says whether it has such budgets, so that charges of
-- other accounts look for none. A trigger, because the previous release closes budgets too, and knows nothing of this. Who closes or
-- reopens a budget holds the lock of its consumer, so no other one is closed or reopened meanwhile.
create or replace function farebox.block_developer() returns trigger language plpgsql as $$
begin
  with blocking as (
    update farebox.accounts set blocks_developers = new.closed_at is not null or exists (
      select from farebox.spend_keys k
      join farebox.budget_details d on d.ledger = k.ledger and d.consumer_id = k.consumer_id and d.number = k.budget
      where k.ledger = new.ledger and k.consumer_id = new.consumer_id and k.developer is not null
        and d.closed_at is not null)
    where consumer_id = new.consumer_id and exists (
      select from farebox.spend_keys
      where ledger = new.ledger and consumer_id = new.consumer_id and budget = new.number and developer is not null)
    returning id
  )
  -- Processes read the keys again, and with them whether developers are blocked, and which.
  update farebox.api_keys set changed_at = clock_timestamp()
  from blocking where account_id = blocking.id and kind = 'consumer' and revoked_at is null;
  return null;
end $$;

create or replace trigger budget_details_block_developer after update of closed_at on farebox.budget_details
  for each row when ((old.closed_at is null) <> (new.closed_at is null))
  execute function farebox.block_developer();
