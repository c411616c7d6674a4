-- A developer whose budget its owner has closed stays refused when the daily limit for each developer is removed. Charges
-- to keys of an account that never closed such a budget are not to look for one, so the account says whether it has any.
-- functions/block_developer.sql sets it from then on.
-- Locks: farebox.accounts, access exclusive, and farebox.budget_details, share row exclusive, for a moment: as long as it takes to
-- read the spend keys of single developers.
-- No budget is closed between the update below and the trigger.
lock table farebox.budget_details in share row exclusive mode;
alter table farebox.accounts add column blocks_developers boolean not null default false;
comment on column farebox.accounts.blocks_developers is
  'Whether the budget of a single developer (spend_keys.developer) was ever closed. Keys of the account never pay that '
  'developer again.';
update farebox.accounts set blocks_developers = true where consumer_id in (
  select k.consumer_id from farebox.spend_keys k
  join farebox.budget_details d on d.ledger = k.ledger and d.consumer_id = k.consumer_id and d.number = k.budget
  where k.developer is not null and d.closed_at is not null
);
