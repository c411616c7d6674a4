-- When the windows of budgets began that an instant is in, by budgets.window_unit: hour, day, week, month, in UTC.
create or replace function farebox.windows_at(p_at timestamptz) returns timestamptz[]
language sql stable
return array[date_trunc('hour', p_at, 'UTC'), date_trunc('day', p_at, 'UTC'), date_trunc('week', p_at, 'UTC'),
  date_trunc('month', p_at, 'UTC')];
