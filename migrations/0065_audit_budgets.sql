-- The audit log records changes to budgets, because raising a limit or allowing leases lets a key spend more. It does not
-- record names and metadata, which can contain any text. Charges change none of these columns, so their updates fire no
-- trigger.
-- Locks: SHARE ROW EXCLUSIVE on both tables, for the catalogue alone. The previous release runs beside it, and its changes
-- are logged too: a new budget with the limits that it has at the commit, followed by its changes.

create constraint trigger budget_details_audit_insert after insert on farebox.budget_details
  deferrable initially deferred for each row
  execute function farebox.audit_change('budget.created', 'consumer_id', 'parent_id', 'limit_micros',
    'window_unit', 'window_limit_micros', 'max_per_call_micros', 'allow_leases', 'max_lease_micros', 'tools', 'developers',
    'approve_developers', 'approved_developers', 'may_delegate', 'expires_at');
create constraint trigger budgets_audit_limits after update of limit_micros, window_unit, window_limit_micros
  on farebox.budgets deferrable initially deferred for each row
  when ((old.limit_micros, old.window_unit, old.window_limit_micros)
    is distinct from (new.limit_micros, new.window_unit, new.window_limit_micros))
  execute function farebox.audit_change('budget.changed', 'consumer_id', 'limit_micros', 'window_unit',
    'window_limit_micros');
create constraint trigger budget_details_audit_update after update of max_per_call_micros, allow_leases,
    max_lease_micros, tools, developers, approve_developers, approved_developers, may_delegate, expires_at
  on farebox.budget_details deferrable initially deferred for each row
  when ((old.max_per_call_micros, old.allow_leases, old.max_lease_micros, old.tools, old.developers,
      old.approve_developers, old.approved_developers, old.may_delegate, old.expires_at)
    is distinct from (new.max_per_call_micros, new.allow_leases, new.max_lease_micros, new.tools, new.developers,
      new.approve_developers, new.approved_developers, new.may_delegate, new.expires_at))
  execute function farebox.audit_change('budget.changed', 'consumer_id', 'max_per_call_micros', 'allow_leases',
    'max_lease_micros', 'tools', 'developers', 'approve_developers', 'approved_developers', 'may_delegate', 'expires_at');
create constraint trigger budget_details_audit_close after update of closed_at on farebox.budget_details
  deferrable initially deferred for each row when (old.closed_at is distinct from new.closed_at)
  execute function farebox.audit_change('budget.closed', 'consumer_id', 'closed_at');
