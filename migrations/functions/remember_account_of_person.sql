-- Remembers which account a deleted person belonged to. The audit log is written at commit (audit_change.sql), when the
-- person, their sessions and their passkeys are already gone.
create or replace function farebox.remember_account_of_person() returns trigger language plpgsql as $$
begin
  perform set_config('farebox.account_of_' || replace(old.id::text, '-', ''), coalesce(old.account_id::text, ''), true);
  return old;
end $$;

create or replace trigger users_remember_account before delete on console.users
  for each row execute function farebox.remember_account_of_person();
