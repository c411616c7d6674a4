-- Asking for an approval read all earlier ones of the account, and rules of budgets, and refused charges, read every
-- one-time approval of the consumer that was never used. Both grew for as long as the account was used. Now what waits has an
-- index of its own, and an approval that was not used in time is not read any more.
-- Locks: SHARE on approvals, for as long as it takes to read them twice, then ACCESS EXCLUSIVE to drop an index: asking and
-- answering wait. Charges read approvals only when a budget refuses them. The previous release may run beside it.

create index approvals_pending_of_account on farebox.approvals (account_id, id) where status = 'pending';
create index approvals_unused on farebox.approvals (ledger, consumer_id, budget, decided_at)
  where decision = 'once' and used_by is null;
drop index farebox.approvals_once;
