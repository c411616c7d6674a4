-- Sets the next mark of a limit that was set or changed: the first above what is used, so what an owner's own change passes
-- makes no event. A new window has all marks before it, even if its first spend passes them.
-- A window that begins earlier than the one before was set by the owner after the clock was set back, and has counted nothing.
-- In the row that is written, before it is: to write the row again took most of the time of changing 100,000 windows at once.
create or replace function farebox.arm_budget_marks() returns trigger language plpgsql as $$
begin
  if old.limit_micros is distinct from new.limit_micros then
    new.notice_at := (
      select min(m.micros) from farebox.budget_marks(new.limit_micros) m where m.micros > new.used_micros);
  end if;
  if new.window_began > old.window_began then
    new.window_notice_at := (
      select min(m.micros) from farebox.budget_marks(new.window_limit_micros) m where m.micros > 0);
  elsif new.window_began < old.window_began or old.window_limit_micros is distinct from new.window_limit_micros then
    new.window_notice_at := (
      select min(m.micros) from farebox.budget_marks(new.window_limit_micros) m where m.micros > new.window_used_micros);
  end if;
  return new;
end $$;

create or replace trigger budgets_arm_marks before update on farebox.budgets
  for each row when (new.window_began <> old.window_began or old.limit_micros is distinct from new.limit_micros
    or old.window_limit_micros is distinct from new.window_limit_micros)
  execute function farebox.arm_budget_marks();
create or replace trigger budgets_arm_marks_insert before insert on farebox.budgets
  for each row when (new.limit_micros is not null or new.window_limit_micros is not null)
  execute function farebox.arm_budget_marks();
