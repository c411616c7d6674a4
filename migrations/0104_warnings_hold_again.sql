-- The request of a refund dismisses the fraud warning that calls for it. If the refund fails, the warning holds the money again:
-- dismissed_at becomes null. The audit log has the dismissal, and nobody decided the rest, so that change has no entry.
-- Locks: ACCESS EXCLUSIVE on reversals for the catalogue alone. The previous release may run beside it.
drop trigger reversals_audit_dismissal on farebox.reversals;
create constraint trigger reversals_audit_dismissal after update of dismissed_at on farebox.reversals
  deferrable initially deferred for each row
  when (new.dismissed_at is not null and old.dismissed_at is distinct from new.dismissed_at)
  execute function farebox.audit_change('warning.dismissed', 'consumer_id', 'amount_micros', 'top_up_id');
comment on column farebox.reversals.dismissed_at is
  'When an operator decided that a fraud warning holds nothing, or requested a refund, which has the same time as created_at. '
  'It never holds again, unless that refund fails.';
