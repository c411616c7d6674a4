-- The owner of an account may reopen the closed budget of a single developer, and the audit log says so. Whether a budget is one of
-- those is shown with each budget, so an index finds its key, however many keys the budget has.
-- Locks: farebox.budget_details, access exclusive, for a moment; farebox.spend_keys, share, as long as it takes to read it.
create unique index spend_keys_budget_of_developer on farebox.spend_keys (ledger, consumer_id, budget) where developer is not null;
drop trigger budget_details_audit_close on farebox.budget_details;
create constraint trigger budget_details_audit_close after update of closed_at on farebox.budget_details
  deferrable initially deferred for each row
  when (new.closed_at is not null and old.closed_at is distinct from new.closed_at)
  execute function farebox.audit_change('budget.closed', 'consumer_id', 'closed_at');
create constraint trigger budget_details_audit_reopen after update of closed_at on farebox.budget_details
  deferrable initially deferred for each row when (old.closed_at is not null and new.closed_at is null)
  execute function farebox.audit_change('budget.reopened', 'consumer_id', 'closed_at');
comment on column farebox.accounts.blocks_developers is
  'Whether the budget of a single developer (spend_keys.developer) is closed. Keys of the account do not pay that developer '
  'until it is reopened.';
