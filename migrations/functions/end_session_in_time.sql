-- A session of the console is extended whenever it is used, but ends thirty days after signing in.
create or replace function farebox.end_session_in_time() returns trigger language plpgsql as $$
begin
  new.expires_at := least(new.expires_at, new.created_at + interval '30 days');
  return new;
end $$;

create or replace trigger sessions_end before insert or update of expires_at on console.sessions
  for each row execute function farebox.end_session_in_time();
