-- The uses of a limit that make an event, as BUDGET_MARKS_PERCENT in src/domain/budget.ts, rounded up to a micro-dollar.
create or replace function farebox.budget_marks(p_limit bigint, out percent int, out micros bigint)
returns setof record
language sql immutable parallel safe as $$
  select v.percent, p_limit - p_limit * (100 - v.percent) / 100 from (values (80), (100)) as v(percent)
  where p_limit is not null
$$;
