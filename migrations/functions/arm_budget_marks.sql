-- Sets the next mark of a limit that was set or changed: the first above what is used, so what an owner's own change passes
-- makes no event. A new window has all marks before it, even if its first spend passes them.
create or replace function farebox.arm_budget_marks() returns trigger language plpgsql
-- A probe of the primary key, for the reasons in post_fitting_charges.sql.
set enable_seqscan = off
as $$
begin
  update farebox.budgets b set
    notice_at = case when old.limit_micros is distinct from new.limit_micros
      then (select min(m.micros) from farebox.budget_marks(new.limit_micros) m where m.micros > new.used_micros)
      else b.notice_at end,
    window_notice_at = case
      when new.window_began > old.window_began
      then (select min(m.micros) from farebox.budget_marks(new.window_limit_micros) m where m.micros > 0)
      when old.window_limit_micros is distinct from new.window_limit_micros
      then (select min(m.micros) from farebox.budget_marks(new.window_limit_micros) m
        where m.micros > new.window_used_micros)
      else b.window_notice_at end
  where b.ledger = new.ledger and b.consumer_id = new.consumer_id and b.number = new.number;
  return null;
end $$;

create or replace trigger budgets_arm_marks after update on farebox.budgets
  for each row when (new.window_began > old.window_began or old.limit_micros is distinct from new.limit_micros
    or old.window_limit_micros is distinct from new.window_limit_micros)
  execute function farebox.arm_budget_marks();
create or replace trigger budgets_arm_marks_insert after insert on farebox.budgets
  for each row when (new.limit_micros is not null or new.window_limit_micros is not null)
  execute function farebox.arm_budget_marks();
