-- An amount as the API shows it: exact dollars, without trailing zeros.
create or replace function farebox.wire_dollars(micros bigint) returns numeric
language sql immutable strict parallel safe
return trim_scale(micros * 0.000001);
