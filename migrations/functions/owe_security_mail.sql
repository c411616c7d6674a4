-- Notes, in the transaction of a change to how a person signs in, that the person must get a mail about it: a process that is
-- killed right after the change loses no mail. The argument is the kind of mail (src/mail/security-mails.ts). No mail is
-- owed for the first password of a person who has never signed in, because they set it from a link in a mail, nor when a person is
-- deleted, which deletes their passkeys too.
create or replace function farebox.owe_security_mail() returns trigger language plpgsql as $$
declare
  v_changed jsonb := to_jsonb(case tg_op when 'DELETE' then old else new end);
begin
  insert into console.owed_mails (user_id, kind)
    select id, tg_argv[0] from console.users
    where id = (v_changed ->> case tg_table_name when 'users' then 'id' else 'user_id' end)::uuid
      and not (tg_table_name = 'credentials' and tg_op = 'INSERT' and account_id is null)
  on conflict (user_id, kind) do update set
    id = excluded.id, owed_at = excluded.owed_at, tried_at = excluded.tried_at;
  return null;
end $$;

create or replace trigger credentials_mail_insert after insert on console.credentials
  for each row when (new.password is not null) execute function farebox.owe_security_mail('password_set');
create or replace trigger credentials_mail_update after update of password on console.credentials
  for each row when (old.password is distinct from new.password) execute function farebox.owe_security_mail('password_set');
create or replace trigger passkeys_mail_insert after insert on console.passkeys
  for each row execute function farebox.owe_security_mail('passkey_added');
create or replace trigger passkeys_mail_delete after delete on console.passkeys
  for each row execute function farebox.owe_security_mail('passkey_removed');
create or replace trigger users_mail_two_factor_on after update of two_factor_enabled on console.users
  for each row when (new.two_factor_enabled and old.two_factor_enabled is not true)
  execute function farebox.owe_security_mail('second_factor_on');
create or replace trigger users_mail_two_factor_off after update of two_factor_enabled on console.users
  for each row when (old.two_factor_enabled and new.two_factor_enabled is not true)
  execute function farebox.owe_security_mail('second_factor_off');
