-- Somebody who sets up two-factor authentication in two tabs may replace the secret that the other tab has just confirmed, with one
-- that is in no app: no code would be accepted any more. The update changes nothing then, and the service refuses the request.
create or replace function farebox.keep_confirmed_secret() returns trigger language plpgsql as $$
begin
  return null;
end $$;

create or replace trigger two_factors_keep_confirmed before update on console.two_factors
  for each row when (old.verified and new.secret <> old.secret) execute function farebox.keep_confirmed_secret();
