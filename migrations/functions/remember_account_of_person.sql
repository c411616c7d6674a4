-- Remembers the account of a person who is being deleted, for the entries of the audit log that are written when the transaction
-- commits (audit_change.sql): sessions and passkeys are deleted with the person, who cannot be looked up then.
create or replace function farebox.remember_account_of_person() returns trigger language plpgsql as $$
begin
  perform set_config('farebox.account_of_' || replace(old.id::text, '-', ''), coalesce(old.account_id::text, ''), true);
  return old;
end $$;

create or replace trigger users_remember_account before delete on console.users
  for each row execute function farebox.remember_account_of_person();
