-- Tells an account that a budget has reached a mark of its limit: one event for each mark, and for each window.
-- Guarantees: the event is in the commit of the spend. It runs when the transaction commits and reads the row again, so
-- a spend that was counted and taken back in the same transaction makes no event. The row is locked by the spend, and
-- the mark moves on with the event, so of concurrent spends exactly one tells.
-- A refund or a release does not move the mark back: a use near a mark tells once.
create or replace function farebox.note_budget_marks() returns trigger language plpgsql
-- Probes of indexes, for the reasons in post_charges_2.sql.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform farebox.post_event_of_ledger(b.ledger, a.id, 'budget.threshold_reached', json_build_object(
    'budgetId', farebox.wire_id('bdg', d.id),
    'scope', l.scope,
    'percent', m.percent,
    'used', farebox.wire_dollars(l.used),
    'limit', farebox.wire_dollars(l.limit_micros),
    'resetsAt', farebox.wire_time(l.resets_at)))
  from farebox.budgets b
  join farebox.budget_details d on d.ledger = any (array[b.ledger]) and d.consumer_id = any (array[b.consumer_id])
    and d.number = any (array[b.number])
  join farebox.accounts a on a.consumer_id = any (array[b.consumer_id])
  cross join lateral (select (array['hour', 'day', 'week', 'month'])[b.window_unit] as unit) u
  cross join lateral (values
    ('total', b.used_micros, b.limit_micros, b.notice_at, null),
    ('window', b.window_used_micros, b.window_limit_micros, b.window_notice_at,
      (date_trunc(u.unit, b.window_began at time zone 'UTC') + ('1 ' || u.unit)::interval) at time zone 'UTC')
  ) as l(scope, used, limit_micros, notice_at, resets_at)
  cross join lateral farebox.budget_marks(l.limit_micros) m
  where b.ledger = new.ledger and b.consumer_id = new.consumer_id and b.number = new.number
    and m.micros between l.notice_at and l.used
  order by l.scope, m.percent;

  update farebox.budgets b set
    notice_at = case when b.used_micros < b.notice_at then b.notice_at
      else (select min(m.micros) from farebox.budget_marks(b.limit_micros) m
        where m.micros > b.used_micros and m.micros > b.notice_at) end,
    window_notice_at = case when b.window_used_micros < b.window_notice_at then b.window_notice_at
      else (select min(m.micros) from farebox.budget_marks(b.window_limit_micros) m
        where m.micros > b.window_used_micros and m.micros > b.window_notice_at) end
  where b.ledger = new.ledger and b.consumer_id = new.consumer_id and b.number = new.number
    and (b.used_micros >= b.notice_at or b.window_used_micros >= b.window_notice_at);
  return null;
end $$;

-- Dropped first: a constraint trigger cannot be replaced.
drop trigger if exists budgets_note_marks on farebox.budgets;
create constraint trigger budgets_note_marks after update on farebox.budgets
  deferrable initially deferred for each row
  when (new.used_micros >= new.notice_at or new.window_used_micros >= new.window_notice_at)
  execute function farebox.note_budget_marks();
