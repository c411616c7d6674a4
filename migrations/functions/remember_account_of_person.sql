-- Remembers the account of a person who is being deleted. Entries of the audit log are written when the transaction commits
-- (audit_change.sql). By then the person, whose sessions and passkeys are deleted too, can no longer be looked up.
create or replace function farebox.remember_account_of_person() returns trigger language plpgsql as $$
begin
  perform set_config('farebox.account_of_' || replace(old.id::text, '-', ''), coalesce(old.account_id::text, ''), true);
  return old;
end $$;

create or replace trigger users_remember_account before delete on console.users
  for each row execute function farebox.remember_account_of_person();
