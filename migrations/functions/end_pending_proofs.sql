-- A new password ends what was begun before it: other links to set a password, sign-ins that only lack the code, and
-- sessions. The sign-in library has already ended the sessions, but someone may have signed in since. This does not wait
-- for a link or a sign-in that is being used, because that may be waiting for this password.
create or replace function farebox.end_pending_proofs() returns trigger language plpgsql as $$
begin
  delete from console.verifications where id in (
    select id from console.verifications where value = new.user_id::text for update skip locked
  );
  delete from console.sessions where user_id = new.user_id;
  return null;
end $$;

create or replace trigger credentials_end_proofs after insert or update of password on console.credentials
  for each row execute function farebox.end_pending_proofs();
