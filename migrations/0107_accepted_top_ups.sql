-- A retry of a top-up that waits for a worker withdrew it while Temporal was down, although an earlier request had already
-- answered 202. The row now says so, and no request withdraws it afterwards. The previous release neither sets nor reads this.
-- Locks: ACCESS EXCLUSIVE on top_ups, to add a column without a default, which reads no row. No charge reads top_ups.
alter table farebox.top_ups add column accepted_at timestamptz;
comment on column farebox.top_ups.accepted_at is
  'When a request first answered 202 for a row that its workflow had not claimed. Such a row is no longer withdrawn.';
