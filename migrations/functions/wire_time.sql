-- A time as the API shows it: ISO 8601 in UTC, cut off after milliseconds.
create or replace function farebox.wire_time(at timestamptz) returns text
language sql stable strict parallel safe
return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
