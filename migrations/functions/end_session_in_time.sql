-- A session of the console is prolonged while it is used (src/store/console/sessions.ts). It ends after seven days
-- without use, and thirty days after signing in. The sign-in library asks for thirty days, as long as browsers keep
-- the cookie.
create or replace function farebox.end_session_in_time() returns trigger language plpgsql as $$
begin
  new.expires_at := least(new.expires_at, now() + interval '7 days', new.created_at + interval '30 days');
  return new;
end $$;

create or replace trigger sessions_end before insert or update of expires_at on console.sessions
  for each row execute function farebox.end_session_in_time();
