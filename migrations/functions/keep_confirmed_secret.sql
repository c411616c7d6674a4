-- Somebody who sets up two-factor authentication in two tabs may replace the secret that the other tab has just confirmed, with one
-- that is in no app: no code would be accepted any more. The update changes nothing then, and the service refuses the request.
-- Nor is the secret deleted while two-factor authentication is on, by a tab that turned it off before another tab turned it on again.
create or replace function farebox.keep_confirmed_secret() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from console.users where id = old.user_id and two_factor_enabled) then
    return old;
  end if;
  return null;
end $$;

create or replace trigger two_factors_keep_confirmed before update on console.two_factors
  for each row when (old.verified and new.secret <> old.secret) execute function farebox.keep_confirmed_secret();
create or replace trigger two_factors_keep_used before delete on console.two_factors
  for each row when (old.verified) execute function farebox.keep_confirmed_secret();
