-- A bank debit pays a checkout days after its payer has authorized it. The row looked like one that nobody has paid: the owner
-- still had a link to pay, and operators saw a top-up that does not finish. The previous release neither sets nor reads this.
-- Locks: ACCESS EXCLUSIVE on top_ups, to add a column without a default, which reads no row. No charge reads top_ups.
alter table farebox.top_ups add column under_way_at timestamptz;
comment on column farebox.top_ups.under_way_at is
  'Checkouts: when the session was first seen as complete and not yet paid. Its payer can do nothing more, and the bank takes days.';
