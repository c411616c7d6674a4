-- What agents received and returned was kept for ever, up to 1.25 MB for each invocation. The command archive now moves
-- it out. The row stays with its hashes, so receipts stay valid. The previous release shows such a row without a result.
-- Locks: ACCESS EXCLUSIVE on invocations, to change its definition: no row is read. Rows that are there satisfied the
-- stricter constraint that this one replaces, so it need not be validated.
alter table farebox.invocations alter column payload drop not null;
alter table farebox.invocations drop constraint invocations_result;
alter table farebox.invocations add constraint invocations_contents check (
  (status = 'succeeded') = (result_hash is not null)
  and case when payload is null then result is null and ended_at is not null
    else (status = 'succeeded') = (result is not null) end
) not valid;
comment on column farebox.invocations.payload is
  '`json`, not `jsonb`: stored exactly as it was sent, because the receipt has its hash. So is `result`. Null: both were '
  'archived, after it ended.';
