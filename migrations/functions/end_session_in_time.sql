-- A session of the console is prolonged whenever it is used, and ends thirty days after signing in all the same.
create or replace function farebox.end_session_in_time() returns trigger language plpgsql as $$
begin
  new.expires_at := least(new.expires_at, new.created_at + interval '30 days');
  return new;
end $$;

create or replace trigger sessions_end before insert or update of expires_at on console.sessions
  for each row execute function farebox.end_session_in_time();
