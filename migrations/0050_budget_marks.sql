-- The next mark of each limit of a budget, 80 % or 100 %: when a spend makes the use reach it, the account gets an event
-- in the spend's own commit (functions/note_budget_marks.sql). Limits that exist are armed for the marks above what is
-- used now.
-- Locks: ACCESS EXCLUSIVE on the budgets while their rows are armed, which delays charges by spend keys that long. The
-- previous release runs beside it: triggers do the work, so its spends make events too.

alter table farebox.budgets add column notice_at bigint, add column window_notice_at bigint;
comment on column farebox.budgets.notice_at is
  'The use of limit_micros that makes the next event. Null: all marks were reached, or there is no limit.';
comment on column farebox.budgets.window_notice_at is
  'As notice_at, of the window that began at window_began. The turn of the window arms all marks again.';

update farebox.budgets b set
  notice_at = (select min(b.limit_micros - b.limit_micros * p.below / 100) from (values (20), (0)) as p(below)
    where b.limit_micros - b.limit_micros * p.below / 100 > b.used_micros),
  window_notice_at = (
    select min(b.window_limit_micros - b.window_limit_micros * p.below / 100) from (values (20), (0)) as p(below)
    where b.window_limit_micros - b.window_limit_micros * p.below / 100 > b.window_used_micros)
where b.limit_micros is not null or b.window_limit_micros is not null;
